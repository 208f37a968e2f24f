//! A tree of depth four over 32-bit keys, 256 to a node.

use format::{BlockMask, FANOUT, NodePage, PAGE, Page, PageHeader, PagePtr};
use format::{TREE_TOP as TOP, first_key};
use std::cell::Cell;
use std::rc::Rc;
use units::hash::Table;

/// The state of a key.
pub enum Lookup<'a, L> {
    /// Its leaf is in memory.
    Loaded(&'a L),
    /// Its leaf is at this pointer.
    OnDisk(PagePtr),
    /// There is no leaf.
    Absent,
    /// A node above it has to be loaded first: its level, first key and pointer.
    NeedNode(u8, u32, PagePtr),
}

/// A node: its page as it is on the drive, and what of it is in memory.
struct Node {
    dirty: bool,
    page: Page,
    /// Pointers that lead somewhere.
    used: BlockMask,
    below: Below,
}

enum Below {
    Nodes(Sparse<Box<Node>>),
    /// The leaves that are in memory: the tree has them.
    Leaves(BlockMask),
}

/// Children of a node in memory, by index, up to the last one.
struct Sparse<T> {
    all: Vec<Option<T>>,
    here: BlockMask,
}

impl<T> Sparse<T> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            here: BlockMask::default(),
        }
    }

    fn get(&self, at: usize) -> Option<&T> {
        self.all.get(at)?.as_ref()
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.all.get_mut(at)?.as_mut()
    }

    fn set(&mut self, at: usize, value: T) -> &mut T {
        if self.all.len() <= at {
            self.all.resize_with(at + 1, || None);
        }
        self.here.set(at);
        self.all[at].insert(value)
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let here = self.here.blocks();
        here.filter_map(|at| Some((at, self.get(at)?)))
    }
}

impl Node {
    /// A loaded node.
    fn new(level: u8, page: Page) -> Self {
        Self {
            used: NodePage::used(&page),
            ..Self::empty(level, page)
        }
    }

    /// One whose page has no pointers yet.
    fn empty(level: u8, page: Page) -> Self {
        let below = if level == 1 {
            Below::Leaves(BlockMask::default())
        } else {
            Below::Nodes(Sparse::new())
        };
        Self {
            dirty: false,
            used: BlockMask::default(),
            page,
            below,
        }
    }

    /// Marks it as changed when `dirty`: 1 when that is news, else 0.
    fn mark(&mut self, dirty: bool) -> usize {
        usize::from(dirty && !std::mem::replace(&mut self.dirty, true))
    }

    fn ptr(&self, at: usize) -> PagePtr {
        NodePage::get(&self.page, at)
    }

    fn set_ptr(&mut self, at: usize, ptr: PagePtr) {
        NodePage::set(&mut self.page, at, ptr);
        if ptr.place.is_some() {
            self.used.set(at);
        } else {
            self.used.clear(at);
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
    top: Option<Node>,
    /// The leaves in memory by key: one look into it finds what four nodes lead to.
    leaves: Table<u32, L>,
    nodes: usize,
    /// Of these have changed.
    dirty: usize,
    /// Of all trees that share it.
    all_dirty: DirtyNodes,
}

/// Nodes of several trees that have changed: each takes a page of the next checkpoint.
#[derive(Clone, Default)]
pub struct DirtyNodes(Rc<Cell<usize>>);

impl DirtyNodes {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.get()
    }
}

impl<L> Drop for Tree<L> {
    fn drop(&mut self) {
        self.count_dirty(-(self.dirty as isize));
    }
}

impl<L> Tree<L> {
    /// The tree of `owner` whose top node is at `root`; nothing of it is loaded. Its changed nodes
    /// count among `dirty`.
    pub fn new(owner: u32, root: PagePtr, dirty: &DirtyNodes) -> Self {
        Self {
            owner,
            root,
            nodes: 0,
            top: None,
            leaves: Table::default(),
            dirty: 0,
            all_dirty: dirty.clone(),
        }
    }

    fn count_dirty(&mut self, by: isize) {
        self.dirty = self.dirty.saturating_add_signed(by);
        let all = self.all_dirty.0.get();
        self.all_dirty.0.set(all.saturating_add_signed(by));
    }

    /// Pointer to the top node as it was last written.
    pub fn root(&self) -> PagePtr {
        self.root
    }

    /// Nodes in memory: those that have changed are among them.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Memory of its nodes in bytes.
    pub fn bytes(&self) -> usize {
        self.nodes * (PAGE + size_of::<Node>()) + self.leaves.bytes()
    }

    /// The header of the node page of `level` (1 to 4) that holds `key`.
    pub fn header(&self, level: u8, key: u32) -> PageHeader {
        NodePage::header(self.owner, level, key, 0)
    }

    /// The state of `key`.
    pub fn lookup(&self, key: u32) -> Lookup<'_, L> {
        match self.leaf(key) {
            Some(leaf) => Lookup::Loaded(leaf),
            None => self.lookup_unloaded(key),
        }
    }

    /// The leaf of `key`, if it is in memory.
    pub fn leaf(&self, key: u32) -> Option<&L> {
        self.leaves.get(&key)
    }

    fn lookup_unloaded(&self, key: u32) -> Lookup<'_, L> {
        let Some(mut node) = self.top.as_ref() else {
            return match self.root.place.is_some() {
                true => Lookup::NeedNode(TOP, 0, self.root),
                false => Lookup::Absent,
            };
        };
        let mut level = TOP;
        loop {
            let at = index(key, level);
            match &node.below {
                Below::Leaves(_) if node.used.has(at) => return Lookup::OnDisk(node.ptr(at)),
                Below::Leaves(_) => return Lookup::Absent,
                Below::Nodes(nodes) => match nodes.get(at) {
                    Some(child) => node = child,
                    None if node.used.has(at) => {
                        let first = first_key(key, level - 1);
                        return Lookup::NeedNode(level - 1, first, node.ptr(at));
                    }
                    None => return Lookup::Absent,
                },
            }
            level -= 1;
        }
    }

    /// Takes a node that [`Lookup::NeedNode`] asked for. Ignored when it is there by now.
    pub fn install(&mut self, level: u8, key: u32, page: Page) {
        let loaded = Node::new(level, page);
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
        let at = index(key, level + 1);
        if nodes.get(at).is_none() {
            nodes.set(at, Box::new(loaded));
            self.nodes += 1;
        }
    }

    fn node_mut(&mut self, level: u8, key: u32) -> Option<&mut Node> {
        let mut node = self.top.as_mut()?;
        for above in (level + 1..=TOP).rev() {
            let Below::Nodes(nodes) = &mut node.below else {
                return None;
            };
            node = nodes.get_mut(index(key, above))?;
        }
        Some(node)
    }

    /// The node above `key`'s leaf; made where there was none. Every node on the way is marked
    /// as changed when `dirty`.
    ///
    /// # Panics
    /// When a node on the way is not loaded: look the key up first.
    fn bottom(&mut self, key: u32, dirty: bool) -> &mut Node {
        let (mut made, mut marked, owner) = (0, 0, self.owner);
        if self.top.is_none() {
            assert!(self.root.place.is_none(), "the top node is loaded");
            made = 1;
            let page = Page::new(NodePage::header(owner, TOP, 0, 0));
            self.top = Some(Node::empty(TOP, page));
        }
        let mut node = self.top.as_mut().expect("there by now");
        for level in (2..=TOP).rev() {
            marked += node.mark(dirty);
            let at = index(key, level);
            let unloaded = node.used.has(at);
            let Below::Nodes(nodes) = &mut node.below else {
                unreachable!("leaves are at level 1")
            };
            if nodes.get(at).is_none() {
                assert!(!unloaded, "a node is loaded before it is changed");
                made += 1;
                let page = Page::new(NodePage::header(owner, level - 1, key, 0));
                nodes.set(at, Box::new(Node::empty(level - 1, page)));
            }
            node = nodes.get_mut(at).expect("there by now");
        }
        self.nodes += made;
        marked += node.mark(dirty);
        self.dirty += marked;
        self.all_dirty.0.set(self.all_dirty.0.get() + marked);
        node
    }

    /// Keeps a leaf in memory, replacing one that was there.
    pub fn set_leaf(&mut self, key: u32, leaf: L) {
        let node = self.bottom(key, false);
        let Below::Leaves(leaves) = &mut node.below else {
            unreachable!("level 1")
        };
        leaves.set(index(key, 1));
        self.leaves.insert(key, leaf);
    }

    /// Forgets a leaf in memory.
    pub fn drop_leaf(&mut self, key: u32) {
        let Some(node) = self.node_mut(1, key) else {
            return;
        };
        let Below::Leaves(leaves) = &mut node.below else {
            unreachable!("level 1")
        };
        leaves.clear(index(key, 1));
        self.leaves.remove(&key);
    }

    /// Pointer to a leaf as it was last written, if the nodes above it are loaded.
    pub fn ptr(&self, key: u32) -> Option<PagePtr> {
        let mut node = self.top.as_ref()?;
        for level in (2..=TOP).rev() {
            let Below::Nodes(nodes) = &node.below else {
                return None;
            };
            node = nodes.get(index(key, level))?;
        }
        Some(node.ptr(index(key, 1)))
    }

    /// A leaf was written elsewhere (or is no more): returns where it was before.
    pub fn set_ptr(&mut self, key: u32, ptr: PagePtr) -> PagePtr {
        let (node, at) = (self.bottom(key, true), index(key, 1));
        let old = node.ptr(at);
        node.set_ptr(at, ptr);
        old
    }

    /// Marks the loaded nodes above `key` as changed, so that they are written again; false when
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

    /// The page of a node, or `None` when nothing is beneath it any longer.
    pub fn encode(&mut self, level: u8, key: u32, generation: u64) -> Option<Page> {
        let header = PageHeader {
            generation,
            ..self.header(level, key)
        };
        let node = self.node_mut(level, key)?;
        if node.used.is_empty() {
            return None;
        }
        node.page.set_header(header);
        Some(node.page.clone())
    }

    /// Whether a node has nothing beneath it any longer: it takes no page.
    pub fn is_empty_node(&mut self, level: u8, key: u32) -> bool {
        let node = self.node_mut(level, key);
        node.is_none_or(|node| node.used.is_empty())
    }

    /// Where a node lies now.
    pub fn node_ptr(&mut self, level: u8, key: u32) -> PagePtr {
        if level == TOP {
            return self.root;
        }
        let parent = self.node_mut(level + 1, key);
        parent.map_or(PagePtr::default(), |parent| {
            parent.ptr(index(key, level + 1))
        })
    }

    /// A node was written to `ptr`: it is not changed any longer, the one above it is.
    pub fn node_written(&mut self, level: u8, key: u32, ptr: PagePtr) {
        let node = self.node_mut(level, key);
        let was = node.is_some_and(|node| std::mem::take(&mut node.dirty));
        let mut marked = 0;
        if level == TOP {
            self.root = ptr;
        } else if let Some(parent) = self.node_mut(level + 1, key) {
            parent.set_ptr(index(key, level + 1), ptr);
            marked = parent.mark(true);
        }
        self.count_dirty(marked as isize - isize::from(was));
    }

    /// Keys from `from` on that have a leaf in memory or on a drive, beneath loaded nodes, with
    /// the next node to load, if one is in the way before `limit` keys are found.
    pub fn scan(&self, from: u32, limit: usize) -> (Vec<u32>, Option<(u8, u32, PagePtr)>) {
        let mut found = Vec::new();
        let need = match &self.top {
            None => self.root.place.is_some().then_some((TOP, 0, self.root)),
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

fn visit(node: &Node, show: &mut dyn FnMut(PagePtr)) {
    node.used.blocks().for_each(|at| show(node.ptr(at)));
    if let Below::Nodes(nodes) = &node.below {
        nodes.iter().for_each(|(_, child)| visit(child, show));
    }
}

fn collect(node: &Node, level: u8, wanted: u8, key: u32, found: &mut Vec<u32>) {
    if !node.dirty {
        return;
    }
    if level == wanted {
        found.push(key);
        return;
    }
    if let Below::Nodes(nodes) = &node.below {
        for (at, child) in nodes.iter() {
            let key = key | (at as u32) << (8 * (level - 1));
            collect(child, level - 1, wanted, key, found);
        }
    }
}

fn scan(
    node: &Node,
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
    let here = match &node.below {
        Below::Leaves(here) => *here,
        Below::Nodes(nodes) => nodes.here,
    };
    for at in node.used.or(here).blocks().skip_while(|at| *at < start) {
        if found.len() >= limit {
            return None;
        }
        let below = key | (at as u32) << (8 * (level - 1));
        match &node.below {
            Below::Leaves(_) if below >= from => found.push(below),
            Below::Leaves(_) => {}
            Below::Nodes(nodes) => {
                let need = match nodes.get(at) {
                    Some(child) => scan(child, level - 1, below, from, limit, found),
                    None => Some((level - 1, below, node.ptr(at))),
                };
                if need.is_some() {
                    return need;
                }
            }
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
            tree.install(level, first, page.expect("the page that was written"));
        }
    }

    const KEYS: [u32; 7] = [0, 1, 255, 256, 65_536, 0x00ff_ffff, u32::MAX];

    #[test]
    fn what_was_written_is_found_again() {
        let mut drive = BTreeMap::new();
        let mut tree = Tree::<()>::new(9, PagePtr::default(), &DirtyNodes::default());
        for key in KEYS {
            tree.set_ptr(key, leaf(1_000_000 + u64::from(key)));
        }
        write(&mut tree, &mut drive);
        assert!(Tree::<()>::levels().all(|level| tree.dirty_nodes(level).is_empty()));
        let mut again = Tree::<()>::new(9, tree.root(), &DirtyNodes::default());
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
        let mut tree = Tree::<()>::new(9, PagePtr::default(), &DirtyNodes::default());
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
        let mut tree = Tree::<()>::new(9, PagePtr::default(), &DirtyNodes::default());
        tree.set_ptr(7, leaf(5));
        write(&mut tree, &mut drive);
        assert_eq!(tree.set_ptr(7, PagePtr::default()), leaf(5));
        write(&mut tree, &mut drive);
        assert_eq!(tree.root(), PagePtr::default());
    }

    #[test]
    fn a_scan_finds_every_key_in_order() {
        let mut drive = BTreeMap::new();
        let mut tree = Tree::<()>::new(9, PagePtr::default(), &DirtyNodes::default());
        for key in KEYS {
            tree.set_ptr(key, leaf(5));
        }
        write(&mut tree, &mut drive);
        let mut again = Tree::<()>::new(9, tree.root(), &DirtyNodes::default());
        let (mut from, mut all) = (0u32, Vec::new());
        loop {
            let (found, need) = again.scan(from, 2);
            if let (Some((level, key, ptr)), true) = (need, found.is_empty()) {
                let page =
                    Page::open(drive[&ptr.place].bytes(), ptr, again.header(level, key)).unwrap();
                again.install(level, key, page);
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
