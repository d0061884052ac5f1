//! What a test does to a simulated cluster beside its API: history that is forgotten, controllers that
//! wait, discovery that lags.

use std::sync::atomic::Ordering;

use crate::sim::Sim;

impl Sim {
    /// Forgets all history: watches and pages from earlier versions get 410.
    pub fn compact(&self) {
        let mut world = self.shared.world();
        let version = world.version;
        world.history.compact(version);
    }

    /// How many watches were ended because their clients did not read.
    pub fn closed_watches(&self) -> u64 {
        self.shared.closed_watches.load(Ordering::Relaxed)
    }

    /// From now on the garbage collector and the namespace controller wait for `step_controllers`.
    pub fn stop_controllers(&self) -> &Self {
        self.controllers(true)
    }

    /// Lets a stopped controller do the oldest thing it has to do: to look after what an object that
    /// went leaves behind, or to delete the dependents of an owner or the content of a namespace.
    /// `false` when there is nothing to do.
    pub fn step_controllers(&self) -> bool {
        let now = self.now();
        self.shared.change(|world| world.step(now))
    }

    /// Lets stopped controllers do all that they have to do, and go on.
    pub fn start_controllers(&self) -> &Self {
        self.controllers(false)
    }

    /// From now on discovery tells of the kinds that are installed at this moment.
    pub fn freeze_discovery(&self) -> &Self {
        let mut world = self.shared.world();
        world.discovered = Some(world.installed());
        drop(world);
        self
    }

    /// Discovery is current again.
    pub fn thaw_discovery(&self) -> &Self {
        self.shared.world().discovered = None;
        self
    }

    fn controllers(&self, wait: bool) -> &Self {
        let now = self.now();
        self.shared
            .change(|world| world.controllers_wait(wait, now));
        self
    }
}
