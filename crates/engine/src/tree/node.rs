//! A tree of depth four over 32-bit keys, 256 to a node.

use format::{FANOUT, NodePage, Page, PageHeader, PagePtr, TREE_TOP as TOP, first_key};

/// What is known of a key.
pub enum Lookup<'a, L> {
    /// Its leaf is in memory.
    Loaded(&'a L),
    /// Its leaf lies at this pointer.
    OnDisk(PagePtr),
    /// There is no leaf.
    Absent,
    /// A node above it has to be loaded first: its level, first key and pointer.
    NeedNode(u8, u32, PagePtr),
}

struct Node<L> {
    dirty: bool,
    ptrs: Box<[PagePtr; FANOUT]>,
    below: Below<L>,
}

enum Below<L> {
    Nodes(Box<[Option<Box<Node<L>>>; FANOUT]>),
    Leaves(Box<[Option<L>; FANOUT]>),
}

impl<L> Node<L> {
    fn new(level: u8) -> Self {
        let below = if level == 1 {
            Below::Leaves(Box::new([const { None }; FANOUT]))
        } else {
            Below::Nodes(Box::new([const { None }; FANOUT]))
        };
        Self {
            dirty: false,
            ptrs: Box::new([PagePtr::default(); FANOUT]),
            below,
        }
    }
}

fn index(key: u32, level: u8) -> usize {
    (key >> (8 * (level - 1))) as usize % FANOUT
}

/// A tree. `L` is what is kept in memory for a leaf.
pub struct Tree<L> {
    owner: u32,
    root: PagePtr,
    top: Option<Node<L>>,
    nodes: usize,
}

impl<L> Tree<L> {
    /// The tree of `owner` whose top node lies at `root`; nothing of it is loaded.
    pub fn new(owner: u32, root: PagePtr) -> Self {
        let top = root.place.is_none().then(|| Node::new(TOP));
        Self {
            owner,
            root,
            nodes: usize::from(top.is_some()),
            top,
        }
    }

    /// Pointer to the top node as it was last written.
    pub fn root(&self) -> PagePtr {
        self.root
    }

    /// Memory of its nodes in bytes.
    pub fn bytes(&self) -> usize {
        self.nodes
            * (FANOUT * (size_of::<PagePtr>() + size_of::<Option<L>>()) + size_of::<Node<L>>())
    }

    /// The header of the node page of `level` (1 to 4) that holds `key`.
    pub fn header(&self, level: u8, key: u32) -> PageHeader {
        NodePage::header(self.owner, level, key, 0)
    }

    /// What is known of `key`.
    pub fn lookup(&self, key: u32) -> Lookup<'_, L> {
        let Some(mut node) = self.top.as_ref() else {
            return Lookup::NeedNode(TOP, 0, self.root);
        };
        let mut level = TOP;
        loop {
            let at = index(key, level);
            match &node.below {
                Below::Leaves(leaves) => {
                    return match &leaves[at] {
                        Some(leaf) => Lookup::Loaded(leaf),
                        None if node.ptrs[at].place.is_some() => Lookup::OnDisk(node.ptrs[at]),
                        None => Lookup::Absent,
                    };
                }
                Below::Nodes(nodes) => match &nodes[at] {
                    Some(child) => node = child,
                    None if node.ptrs[at].place.is_some() => {
                        return Lookup::NeedNode(
                            level - 1,
                            first_key(key, level - 1),
                            node.ptrs[at],
                        );
                    }
                    None => return Lookup::Absent,
                },
            }
            level -= 1;
        }
    }

    /// Takes a node that [`Lookup::NeedNode`] asked for. Ignored when it is there by now.
    pub fn install(&mut self, level: u8, key: u32, page: &Page) {
        let mut loaded = Node::new(level);
        for (at, ptr) in loaded.ptrs.iter_mut().enumerate() {
            *ptr = NodePage::get(page, at);
        }
        if level == TOP {
            if self.top.is_none() {
                self.top = Some(loaded);
                self.nodes += 1;
            }
            return;
        }
        let Some(parent) = self.node_mut(level + 1, key) else {
            return;
        };
        let Below::Nodes(nodes) = &mut parent.below else {
            return;
        };
        let slot = &mut nodes[index(key, level + 1)];
        if slot.is_none() {
            *slot = Some(Box::new(loaded));
            self.nodes += 1;
        }
    }

    fn node_mut(&mut self, level: u8, key: u32) -> Option<&mut Node<L>> {
        let mut node = self.top.as_mut()?;
        for above in (level + 1..=TOP).rev() {
            let Below::Nodes(nodes) = &mut node.below else {
                return None;
            };
            node = nodes[index(key, above)].as_deref_mut()?;
        }
        Some(node)
    }

    /// The node above `key`'s leaf; made where there was none. Every node on the way is marked
    /// as changed when `dirty`.
    ///
    /// # Panics
    /// When a node on the way is not loaded: look the key up first.
    fn bottom(&mut self, key: u32, dirty: bool) -> &mut Node<L> {
        let mut made = 0;
        let mut node = self.top.as_mut().expect("the top node is loaded");
        for level in (2..=TOP).rev() {
            node.dirty |= dirty;
            let at = index(key, level);
            let unloaded = node.ptrs[at].place.is_some();
            let Below::Nodes(nodes) = &mut node.below else {
                unreachable!("leaves are at level 1")
            };
            node = nodes[at].get_or_insert_with(|| {
                assert!(!unloaded, "a node is loaded before it is changed");
                made += 1;
                Box::new(Node::new(level - 1))
            });
        }
        self.nodes += made;
        node.dirty |= dirty;
        node
    }

    /// Keeps a leaf in memory, replacing one that was there.
    pub fn set_leaf(&mut self, key: u32, leaf: L) {
        let node = self.bottom(key, false);
        let Below::Leaves(leaves) = &mut node.below else {
            unreachable!("level 1")
        };
        leaves[index(key, 1)] = Some(leaf);
    }

    /// Forgets a leaf in memory.
    pub fn drop_leaf(&mut self, key: u32) {
        let Some(node) = self.node_mut(1, key) else {
            return;
        };
        let Below::Leaves(leaves) = &mut node.below else {
            unreachable!("level 1")
        };
        leaves[index(key, 1)] = None;
    }

    /// Pointer to a leaf as it was last written, if the nodes above it are loaded.
    pub fn ptr(&self, key: u32) -> Option<PagePtr> {
        let mut node = self.top.as_ref()?;
        for level in (2..=TOP).rev() {
            let Below::Nodes(nodes) = &node.below else {
                return None;
            };
            node = nodes[index(key, level)].as_deref()?;
        }
        Some(node.ptrs[index(key, 1)])
    }

    /// A leaf was written elsewhere (or is no more): returns where it was before.
    pub fn set_ptr(&mut self, key: u32, ptr: PagePtr) -> PagePtr {
        let node = self.bottom(key, true);
        std::mem::replace(&mut node.ptrs[index(key, 1)], ptr)
    }

    /// Marks the loaded nodes above `key` as changed, so that they are written anew; false when
    /// they are not all loaded.
    pub fn renew_nodes(&mut self, key: u32) -> bool {
        let loaded = self.ptr(key).is_some();
        if loaded {
            self.bottom(key, true);
        }
        loaded
    }

    /// First keys of the changed nodes of `level`, in order.
    pub fn dirty_nodes(&self, level: u8) -> Vec<u32> {
        let mut found = Vec::new();
        if let Some(top) = &self.top {
            collect(top, TOP, level, 0, &mut found);
        }
        found
    }

    /// The page of a node, or `None` when nothing is beneath it any more.
    pub fn encode(&mut self, level: u8, key: u32, generation: u64) -> Option<Page> {
        let header = PageHeader {
            generation,
            ..self.header(level, key)
        };
        let node = self.node_mut(level, key)?;
        if node.ptrs.iter().all(|ptr| ptr.place.is_none()) {
            return None;
        }
        let mut page = Page::new(header);
        for (at, ptr) in node.ptrs.iter().enumerate() {
            NodePage::set(&mut page, at, *ptr);
        }
        Some(page)
    }

    /// Where a node lies now.
    pub fn node_ptr(&mut self, level: u8, key: u32) -> PagePtr {
        if level == TOP {
            return self.root;
        }
        let parent = self.node_mut(level + 1, key);
        parent.map_or(PagePtr::default(), |parent| {
            parent.ptrs[index(key, level + 1)]
        })
    }

    /// A node was written to `ptr`: it is not changed any more, the one above it is.
    pub fn node_written(&mut self, level: u8, key: u32, ptr: PagePtr) {
        if let Some(node) = self.node_mut(level, key) {
            node.dirty = false;
        }
        if level == TOP {
            self.root = ptr;
        } else if let Some(parent) = self.node_mut(level + 1, key) {
            parent.ptrs[index(key, level + 1)] = ptr;
            parent.dirty = true;
        }
    }

    /// Keys from `from` on that have a leaf in memory or on a drive, beneath loaded nodes, with
    /// the next node to load, if one is in the way before `limit` keys are found.
    pub fn scan(&self, from: u32, limit: usize) -> (Vec<u32>, Option<(u8, u32, PagePtr)>) {
        let mut found = Vec::new();
        let need = match &self.top {
            None => Some((TOP, 0, self.root)),
            Some(top) => scan(top, TOP, 0, from, limit, &mut found),
        };
        (found, need)
    }

    /// Shows every page that was written, nodes and leaves, beneath loaded nodes.
    pub fn visit(&self, show: &mut dyn FnMut(PagePtr)) {
        if self.root.place.is_some() {
            show(self.root);
        }
        if let Some(top) = &self.top {
            visit(top, show);
        }
    }

    /// Levels from the leaves' parents to the top.
    pub fn levels() -> std::ops::RangeInclusive<u8> {
        1..=TOP
    }
}

fn visit<L>(node: &Node<L>, show: &mut dyn FnMut(PagePtr)) {
    for ptr in node.ptrs.iter().filter(|ptr| ptr.place.is_some()) {
        show(*ptr);
    }
    if let Below::Nodes(nodes) = &node.below {
        nodes.iter().flatten().for_each(|child| visit(child, show));
    }
}

fn collect<L>(node: &Node<L>, level: u8, wanted: u8, key: u32, found: &mut Vec<u32>) {
    if !node.dirty {
        return;
    }
    if level == wanted {
        found.push(key);
        return;
    }
    if let Below::Nodes(nodes) = &node.below {
        for (at, child) in nodes.iter().enumerate() {
            if let Some(child) = child {
                collect(
                    child,
                    level - 1,
                    wanted,
                    key | (at as u32) << (8 * (level - 1)),
                    found,
                );
            }
        }
    }
}

fn scan<L>(
    node: &Node<L>,
    level: u8,
    key: u32,
    from: u32,
    limit: usize,
    found: &mut Vec<u32>,
) -> Option<(u8, u32, PagePtr)> {
    let start = if key < first_key(from, level) || from <= key {
        0
    } else {
        index(from, level)
    };
    for at in start..FANOUT {
        if found.len() >= limit {
            return None;
        }
        let below = key | (at as u32) << (8 * (level - 1));
        match &node.below {
            Below::Leaves(leaves) => {
                if below >= from && (leaves[at].is_some() || node.ptrs[at].place.is_some()) {
                    found.push(below);
                }
            }
            Below::Nodes(nodes) => match &nodes[at] {
                Some(child) => {
                    let need = scan(child, level - 1, below, from, limit, found);
                    if need.is_some() {
                        return need;
                    }
                }
                None if node.ptrs[at].place.is_some() => {
                    return Some((level - 1, below, node.ptrs[at]));
                }
                None => {}
            },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use units::{Place, VdriveId};

    /// Writes every changed node to a make-believe drive, as a checkpoint does.
    fn write<L>(tree: &mut Tree<L>, drive: &mut BTreeMap<Place, Page>) {
        for level in Tree::<L>::levels() {
            for key in tree.dirty_nodes(level) {
                let place = Place::new(VdriveId(0), drive.len() as u64 + 1);
                let page = tree.encode(level, key, 1);
                let ptr = page.as_ref().map_or(PagePtr::default(), |page| PagePtr {
                    place,
                    crc: page.crc(),
                    hint: 0,
                });
                if let Some(page) = page {
                    drive.insert(place, page);
                }
                tree.node_written(level, key, ptr);
            }
        }
    }

    fn leaf(at: u64) -> PagePtr {
        PagePtr {
            place: Place::new(VdriveId(0), at),
            crc: at as u32,
            hint: 0,
        }
    }

    fn find(tree: &mut Tree<()>, drive: &BTreeMap<Place, Page>, key: u32) -> Option<PagePtr> {
        loop {
            let (level, first, ptr) = match tree.lookup(key) {
                Lookup::OnDisk(ptr) => return Some(ptr),
                Lookup::Absent => return None,
                Lookup::Loaded(()) => panic!("no leaf was kept"),
                Lookup::NeedNode(level, first, ptr) => (level, first, ptr),
            };
            let page = Page::open(drive[&ptr.place].bytes(), ptr, tree.header(level, first));
            tree.install(level, first, &page.expect("the page that was written"));
        }
    }

    const KEYS: [u32; 7] = [0, 1, 255, 256, 65_536, 0x00ff_ffff, u32::MAX];

    #[test]
    fn what_was_written_is_found_again() {
        let mut drive = BTreeMap::new();
        let mut tree = Tree::<()>::new(9, PagePtr::default());
        for key in KEYS {
            tree.set_ptr(key, leaf(1_000_000 + u64::from(key)));
        }
        write(&mut tree, &mut drive);
        assert!(Tree::<()>::levels().all(|level| tree.dirty_nodes(level).is_empty()));
        let mut again = Tree::<()>::new(9, tree.root());
        for key in KEYS {
            assert_eq!(
                find(&mut again, &drive, key),
                Some(leaf(1_000_000 + u64::from(key))),
                "{key}"
            );
        }
        assert_eq!(find(&mut again, &drive, 2), None);
        assert_eq!(find(&mut again, &drive, 0x7000_0000), None);
    }

    #[test]
    fn only_the_path_of_a_change_is_written() {
        let mut drive = BTreeMap::new();
        let mut tree = Tree::<()>::new(9, PagePtr::default());
        for key in KEYS {
            tree.set_ptr(key, leaf(5));
        }
        write(&mut tree, &mut drive);
        tree.set_ptr(256, leaf(6));
        let counts: Vec<_> = Tree::<()>::levels()
            .map(|level| tree.dirty_nodes(level).len())
            .collect();
        assert_eq!(counts, [1, 1, 1, 1]);
    }

    #[test]
    fn an_empty_tree_takes_no_page() {
        let mut drive = BTreeMap::new();
        let mut tree = Tree::<()>::new(9, PagePtr::default());
        tree.set_ptr(7, leaf(5));
        write(&mut tree, &mut drive);
        assert_eq!(tree.set_ptr(7, PagePtr::default()), leaf(5));
        write(&mut tree, &mut drive);
        assert_eq!(tree.root(), PagePtr::default());
    }

    #[test]
    fn a_scan_finds_every_key_in_order() {
        let mut drive = BTreeMap::new();
        let mut tree = Tree::<()>::new(9, PagePtr::default());
        for key in KEYS {
            tree.set_ptr(key, leaf(5));
        }
        write(&mut tree, &mut drive);
        let mut again = Tree::<()>::new(9, tree.root());
        let (mut from, mut all) = (0u32, Vec::new());
        loop {
            let (found, need) = again.scan(from, 2);
            if let (Some((level, key, ptr)), true) = (need, found.is_empty()) {
                let page =
                    Page::open(drive[&ptr.place].bytes(), ptr, again.header(level, key)).unwrap();
                again.install(level, key, &page);
                continue;
            }
            let Some(last) = found.last().copied() else {
                break;
            };
            all.extend(found);
            match last.checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(all, KEYS);
    }
}
