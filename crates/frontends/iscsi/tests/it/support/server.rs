//! An export on event loops of its own.

use super::memory_device::MemoryDevice;
use block::BlockDevice;
use reactor::{Budget, Export, Keeper, NoKeeper, ReactorThread, StartExport};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

pub struct Server {
    pub device: Arc<MemoryDevice>,
    pub export: Option<Box<dyn Export>>,
    pub target: String,
    pub loops: Vec<ReactorThread>,
    /// Memory budget of its hosts.
    pub memory: Budget,
    keeper: Arc<dyn Keeper>,
    parameters: Vec<(String, String)>,
}

/// A volume of 8 MiB with a unique serial number.
fn device() -> (Arc<MemoryDevice>, String) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let device = MemoryDevice::new(8 << 20, 512);
    // Reservations are identified by the serial number.
    let serial = format!("memory{number}");
    device.set_serial(&serial);
    (device, serial)
}

/// An export of any volume.
pub fn export(
    device: Arc<dyn BlockDevice>,
    (keeper, memory): (Arc<dyn Keeper>, Budget),
    loops: &[ReactorThread],
    parameters: &[(&str, &str)],
) -> std::io::Result<Box<dyn Export>> {
    (frontend_iscsi::FRONT_END.start)(StartExport {
        name: "disk".to_owned(),
        volume: "volume".to_owned(),
        device,
        open_for: None,
        keeper,
        memory,
        parameters: parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        remotes: loops.iter().map(|each| each.remote().clone()).collect(),
    })
}

/// The only portal of an export.
pub fn portal_of(export: &dyn Export) -> SocketAddr {
    let address = export.address();
    let portal = address.trim_start_matches("iscsi:").split('/').next();
    portal.unwrap().parse().unwrap()
}

impl Server {
    /// A volume as unit 0 of a unique target.
    pub fn start(parameters: &[(&str, &str)]) -> Self {
        Self::keeping(Arc::new(NoKeeper), parameters)
    }

    /// The same with storage for reservations.
    pub fn keeping(keeper: Arc<dyn Keeper>, parameters: &[(&str, &str)]) -> Self {
        Self::kept_in((keeper, Budget::new(64 << 20)), parameters)
    }

    /// A volume whose hosts have a memory budget.
    pub fn with_memory(bytes: usize) -> Self {
        Self::kept_in((Arc::new(NoKeeper), Budget::new(bytes)), &[])
    }

    fn kept_in((keeper, memory): (Arc<dyn Keeper>, Budget), parameters: &[(&str, &str)]) -> Self {
        let (device, serial) = device();
        let target = format!("iqn.2026-11.test:{serial}");
        let loops: Vec<_> = (0..2)
            .map(|seed| ReactorThread::start("iscsi-test", seed).unwrap())
            .collect();
        let mut all = vec![("portal", "127.0.0.1:0"), ("target", &target)];
        all.extend(parameters);
        let export = Some(
            export(
                device.clone(),
                (keeper.clone(), memory.clone()),
                &loops,
                &all,
            )
            .unwrap(),
        );
        let parameters = all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let parameters = parameters.collect();
        Self {
            device,
            export,
            target,
            loops,
            memory,
            keeper,
            parameters,
        }
    }

    /// Another volume as unit 1 of the same target and portal; with its serial number.
    pub fn second(
        &self,
        parameters: &[(&str, &str)],
    ) -> (Box<dyn Export>, Arc<MemoryDevice>, String) {
        let (device, serial) = device();
        let portal = self.portal().to_string();
        let mut all = vec![("portal", &*portal), ("target", &self.target), ("lun", "1")];
        all.extend(parameters);
        (
            export(device.clone(), self.kept(), &self.loops, &all).unwrap(),
            device,
            serial,
        )
    }

    /// Another volume of the same target, with only these parameters.
    pub fn another(&self, parameters: &[(&str, &str)]) -> std::io::Result<Box<dyn Export>> {
        let mut all = vec![("target", &*self.target)];
        all.extend(parameters);
        export(device().0, self.kept(), &self.loops, &all)
    }

    /// A further export of the same volume at the same portal.
    pub fn also(&self, parameters: &[(&str, &str)]) -> Box<dyn Export> {
        let portal = self.portal().to_string();
        let mut all = vec![("portal", &*portal)];
        all.extend(parameters);
        export(self.device.clone(), self.kept(), &self.loops, &all).unwrap()
    }

    fn kept(&self) -> (Arc<dyn Keeper>, Budget) {
        (Arc::new(NoKeeper), self.memory.clone())
    }

    /// Changes parameters during sessions.
    pub fn change(&mut self, parameters: &[(&str, &str)]) -> std::io::Result<()> {
        for (name, value) in parameters {
            self.parameters.retain(|(known, _)| known != name);
            self.parameters
                .push(((*name).to_owned(), (*value).to_owned()));
        }
        let all = self.parameters.iter().cloned().collect();
        self.export.as_ref().unwrap().change(&all)
    }

    /// Stops the export and starts it again, like another process.
    pub fn restart(&mut self) {
        self.export = None;
        let pairs = self.parameters.iter();
        let parameters: Vec<_> = pairs.map(|(name, value)| (&**name, &**value)).collect();
        let keeper = self.keeper.clone();
        self.export = Some(
            export(
                self.device.clone(),
                (keeper, self.memory.clone()),
                &self.loops,
                &parameters,
            )
            .unwrap(),
        );
    }

    pub fn portal(&self) -> SocketAddr {
        portal_of(self.export.as_deref().unwrap())
    }

    pub fn sessions(&self) -> usize {
        self.export.as_ref().unwrap().sessions()
    }
}
