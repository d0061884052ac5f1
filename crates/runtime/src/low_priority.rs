//! Low-priority (nice 10) runtime, so that expensive queries do not delay cheap ones.
//!
//! Threads inherit the niceness of the thread that starts them, so reading rows, unpacking payloads
//! and evaluating filters all have the low priority of the call.

use std::{
    cell::Cell,
    io,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    runtime::{Builder, Runtime},
    task::spawn_blocking,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::cores::cores;

/// How much the system prefers others, from 0 to 19. At 19 a page waits for seconds where other processes
/// keep all processors busy, and short calls are not faster than at 10; see docs/adr/0022.
const NICENESS: i32 = 10;

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(start);

/// The work broke off.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("work of low priority broke off")]
pub struct Broken;

/// Whether this thread belongs to the low-priority runtime.
fn is_here() -> bool {
    HERE.get()
}

/// Does `work` at low priority. Dropping the returned future aborts it.
///
/// # Errors
/// If `work` panics.
pub async fn run<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Broken> {
    match &*THREADS {
        Ok(threads) if !is_here() => AbortOnDropHandle::new(threads.spawn(work))
            .await
            .map_err(|_ended| Broken),
        // Already there, or the threads could not be started: it is done where it is.
        _ => Ok(work.await),
    }
}

/// Does `work`, which keeps a thread busy, at low priority. Dropping the returned future cancels
/// the token that `work` is given.
///
/// # Errors
/// If `work` panics.
pub async fn block<T: Send + 'static>(
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, Broken> {
    let stop = CancellationToken::new();
    let _unless_done = stop.clone().drop_guard();
    let work = move || work(&stop);
    let done = match &*THREADS {
        Ok(threads) => threads.spawn_blocking(work),
        Err(_) => spawn_blocking(work),
    };
    AbortOnDropHandle::new(done).await.map_err(|_ended| Broken)
}

fn start() -> io::Result<Runtime> {
    let threads = Builder::new_multi_thread()
        .worker_threads(cores())
        .thread_name_fn(|| {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            format!("low-priority-{}", COUNT.fetch_add(1, Ordering::Relaxed))
        })
        .on_thread_start(lower_priority)
        .enable_all()
        .build();
    if let Err(error) = &threads {
        tracing::error!(%error, "cannot start low-priority threads");
    }
    threads
}

fn lower_priority() {
    HERE.set(true);
    // On Linux this is about the calling thread alone; elsewhere about all, so not done there.
    if cfg!(target_os = "linux")
        && let Err(error) = rustix::process::setpriority_process(None, NICENESS)
    {
        tracing::debug!(%error, "expensive queries have the same priority as everything else");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_elsewhere_also_after_a_panic() {
        assert!(run(async { is_here() }).await.unwrap());
        assert!(!is_here());
        run(async { std::panic::resume_unwind(Box::new(())) })
            .await
            .map(|(): ()| ())
            .unwrap_err();
        let within = run(async { run(async { is_here() }).await.unwrap() });
        assert!(within.await.unwrap());
        let blocking = run(async { tokio::task::spawn_blocking(is_here).await.unwrap() });
        assert!(blocking.await.unwrap());
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_ends() {
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (held, ended) = tokio::sync::oneshot::channel::<()>();
        let work = run(async move {
            let _held = held;
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        tokio::select! {
            _ = work => panic!("it never ends by itself"),
            begins = begins => begins.unwrap(),
        }
        ended.await.unwrap_err();
    }

    #[tokio::test]
    async fn work_on_a_thread_is_told_that_nobody_waits_for_it() {
        assert!(
            block(|stop| is_here() && !stop.is_cancelled())
                .await
                .unwrap()
        );
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (end, ended) = tokio::sync::oneshot::channel();
        let work = block(move |stop| {
            begun.send(()).unwrap();
            while !stop.is_cancelled() {
                std::thread::yield_now();
            }
            end.send(()).unwrap();
        });
        tokio::select! {
            _ = work => panic!("it ends only where nobody waits"),
            begins = begins => begins.unwrap(),
        }
        ended.await.unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn everything_else_goes_first() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let (own, started) = run(async move {
            let started = std::thread::spawn(nice).join().unwrap();
            (nice(), started)
        })
        .await
        .unwrap();
        assert_eq!((own, started), (NICENESS, NICENESS));
        assert_ne!(nice(), NICENESS);
    }
}
