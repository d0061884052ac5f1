//! A layout of nodes and arrows: each node right of what it waits for, arrows with few crossings.
//!
//! Layers are the longest ways from the beginning; long arrows take a place in each layer that they
//! pass; places are ordered by the mean of their neighbours.

/// Size of a node, and distances.
pub(crate) const WIDTH: f64 = 196.0;
pub(crate) const HEIGHT: f64 = 44.0;
const ACROSS: f64 = 64.0;
const BETWEEN: f64 = 16.0;
/// Height of an arrow that passes a layer.
const PASSING: f64 = 10.0;
const MARGIN: f64 = 12.0;
/// How often places are ordered, and moved towards their neighbours.
const SWEEPS: usize = 8;
const MOVES: usize = 12;

/// Where nodes and arrows are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Upper left corners.
    pub(crate) nodes: Vec<(f64, f64)>,
    /// Of each arrow the points it passes, in the order in which arrows were given.
    pub(crate) arrows: Vec<Vec<(f64, f64)>>,
}

/// A place in a layer: a node, or an arrow on its way.
#[derive(Debug, Clone)]
struct Place {
    layer: usize,
    height: f64,
    y: f64,
    before: Vec<usize>,
    after: Vec<usize>,
}

/// Lays out so many nodes with these arrows between them. Of a circle one arrow leads back.
pub(crate) fn layout(count: usize, arrows: &[(usize, usize)]) -> Layout {
    let layers = layers(count, arrows);
    let mut places: Vec<Place> = layers.iter().map(|layer| place(*layer, HEIGHT)).collect();
    let mut ways = Vec::with_capacity(arrows.len());
    for &(from, to) in arrows {
        let mut way = vec![from];
        for layer in layers[from] + 1..layers[to] {
            way.push(places.len());
            places.push(place(layer, PASSING));
        }
        way.push(to);
        for pair in way.windows(2) {
            places[pair[0]].after.push(pair[1]);
            places[pair[1]].before.push(pair[0]);
        }
        ways.push(way);
    }
    let most = layers.iter().copied().max().unwrap_or_default();
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); most + 1];
    for (at, place) in places.iter().enumerate() {
        order[place.layer].push(at);
    }
    sort(&places, &mut order);
    settle(&mut places, &order);
    let top = places
        .iter()
        .map(|place| place.y)
        .fold(f64::INFINITY, f64::min);
    let top = if top.is_finite() { top } else { 0.0 };
    let left = |place: &Place| MARGIN + place.layer as f64 * (WIDTH + ACROSS);
    let middle = |place: &Place| place.y - top + MARGIN + place.height / 2.0;
    let arrows = ways.iter().map(|way| points(&places, way, &left, &middle));
    let arrows: Vec<_> = arrows.collect();
    let bottom = places.iter().map(|place| place.y + place.height);
    Layout {
        width: MARGIN * 2.0 + (most + 1) as f64 * WIDTH + most as f64 * ACROSS,
        height: (bottom.fold(f64::NEG_INFINITY, f64::max) - top).max(0.0) + MARGIN * 2.0,
        nodes: places[..count]
            .iter()
            .map(|place| (left(place), place.y - top + MARGIN))
            .collect(),
        arrows,
    }
}

fn place(layer: usize, height: f64) -> Place {
    Place {
        layer,
        height,
        y: 0.0,
        before: Vec::new(),
        after: Vec::new(),
    }
}

fn points(
    places: &[Place],
    way: &[usize],
    left: &impl Fn(&Place) -> f64,
    middle: &impl Fn(&Place) -> f64,
) -> Vec<(f64, f64)> {
    let last = way.len() - 1;
    let points = way.iter().enumerate().flat_map(|(at, place)| {
        let place = &places[*place];
        let (x, y) = (left(place), middle(place));
        let ends = match at {
            0 => [None, Some((x + WIDTH, y))],
            at if at == last => [Some((x, y)), None],
            _ => [Some((x, y)), Some((x + WIDTH, y))],
        };
        ends.into_iter().flatten()
    });
    points.collect()
}

/// The layer of each node: the longest way to it.
fn layers(count: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let mut waits = vec![0_usize; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(from, to) in arrows {
        waits[to] += 1;
        after[from].push(to);
    }
    let mut layers = vec![0; count];
    let mut is_done = vec![false; count];
    let mut ready: Vec<usize> = (0..count).filter(|at| waits[*at] == 0).collect();
    for next in 0..=count {
        while let Some(at) = ready.pop() {
            if std::mem::replace(&mut is_done[at], true) {
                continue;
            }
            for &to in &after[at] {
                if is_done[to] {
                    continue;
                }
                layers[to] = layers[to].max(layers[at] + 1);
                waits[to] -= 1;
                if waits[to] == 0 {
                    ready.push(to);
                }
            }
        }
        // What is left waits for itself: the first begins.
        if next < count && !is_done[next] {
            ready.push(next);
        }
    }
    layers
}

/// Orders the places of each layer by where their neighbours are, from both sides in turn.
fn sort(places: &[Place], order: &mut [Vec<usize>]) {
    let mut rank = vec![0.0; places.len()];
    let number = |layer: &[usize], rank: &mut [f64]| {
        for (at, place) in layer.iter().enumerate() {
            rank[*place] = at as f64;
        }
    };
    for layer in order.iter() {
        number(layer, &mut rank);
    }
    for sweep in 0..SWEEPS {
        let forward = sweep % 2 == 0;
        let all: Vec<usize> = match forward {
            true => (0..order.len()).collect(),
            false => (0..order.len()).rev().collect(),
        };
        for at in all {
            let layer = &mut order[at];
            let mut keyed: Vec<(f64, usize)> = layer
                .iter()
                .map(|place| {
                    let near = match forward {
                        true => &places[*place].before,
                        false => &places[*place].after,
                    };
                    (
                        mean(near.iter().map(|it| rank[*it])).unwrap_or(rank[*place]),
                        *place,
                    )
                })
                .collect();
            // Stable: what is equal keeps its order.
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *layer = keyed.into_iter().map(|(_, place)| place).collect();
            number(layer, &mut rank);
        }
    }
}

/// Gives places their height above each other, near their neighbours.
fn settle(places: &mut [Place], order: &[Vec<usize>]) {
    for layer in order {
        let mut y = 0.0;
        for &at in layer {
            places[at].y = y;
            y += places[at].height + BETWEEN;
        }
        for &at in layer {
            places[at].y -= y / 2.0;
        }
    }
    for _ in 0..MOVES {
        for layer in order {
            let wanted: Vec<f64> = layer
                .iter()
                .map(|&at| {
                    let place = &places[at];
                    let near = place.before.iter().chain(&place.after);
                    let middle = |it: &usize| places[*it].y + places[*it].height / 2.0;
                    let middle = mean(near.map(middle));
                    middle.map_or(place.y, |middle| middle - place.height / 2.0)
                })
                .collect();
            let mut least = f64::NEG_INFINITY;
            let mut moved = 0.0;
            for (&at, wanted) in layer.iter().zip(&wanted) {
                places[at].y = wanted.max(least);
                least = places[at].y + places[at].height + BETWEEN;
                moved += places[at].y - wanted;
            }
            // What was pushed down is moved up as a whole.
            let up = moved / layer.len().max(1) as f64;
            for &at in layer {
                places[at].y -= up;
            }
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value, count + 1)
    });
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether no two nodes of a layer touch.
    fn is_apart(layout: &Layout) -> bool {
        let nodes = &layout.nodes;
        nodes.iter().enumerate().all(|(at, one)| {
            nodes[at + 1..]
                .iter()
                .all(|other| one.0 != other.0 || (one.1 - other.1).abs() >= HEIGHT)
        })
    }

    #[test]
    fn a_node_is_right_of_what_it_waits_for() {
        // build > (unit, lint) > deploy, build > deploy
        let arrows = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)];
        let layout = layout(4, &arrows);
        let x: Vec<_> = layout.nodes.iter().map(|node| node.0).collect();
        assert!(x[0] < x[1] && x[1] == x[2] && x[2] < x[3]);
        assert!(is_apart(&layout));
        for ((from, to), points) in arrows.iter().zip(&layout.arrows) {
            let (first, last) = (points[0], points[points.len() - 1]);
            assert_eq!(first.0, layout.nodes[*from].0 + WIDTH);
            assert_eq!(last.0, layout.nodes[*to].0);
        }
        // Nothing is left empty below the lowest node.
        let lowest = layout.nodes.iter().map(|node| node.1).fold(0.0, f64::max);
        assert!(layout.height - lowest - HEIGHT < 60.0, "{layout:?}");
        // The long arrow passes between the nodes of the layer that it crosses, not through them.
        let (_, y) = layout.arrows[4][1];
        let is_free = |node: &(f64, f64)| y < node.1 || y > node.1 + HEIGHT;
        assert!(layout.nodes[1..3].iter().all(is_free), "{layout:?}");
    }

    #[test]
    fn circles_end_and_nothing_is_drawn_outside() {
        let empty = layout(0, &[]);
        assert!(empty.nodes.is_empty() && empty.width.is_finite() && empty.height.is_finite());
        let arrows = [(0, 1), (1, 2), (2, 0), (3, 3), (2, 4)];
        let circle = layout(5, &arrows);
        assert!(is_apart(&circle));
        let large: Vec<_> = (0..400)
            .flat_map(|at| [(at, (at * 7 + 1) % 400), (at, (at * 3 + 2) % 400)])
            .collect();
        let large = layout(400, &large);
        assert!(is_apart(&large));
        for (x, y) in &large.nodes {
            assert!(*x >= 0.0 && x + WIDTH <= large.width);
            assert!(
                *y >= 0.0 && y + HEIGHT <= large.height,
                "{y} {}",
                large.height
            );
        }
    }
}
