//! Test certificates of one CA and of another one, in the layout of libnbd and QEMU.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};

/// A directory with the server's files and a subdirectory per client.
pub struct Certificates {
    pub folder: PathBuf,
}

fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap().pem();
    (own, Issuer::new(params, key))
}

fn signed(folder: &Path, who: &str, names: &[&str], by: &Issuer<'static, KeyPair>) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, who);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    std::fs::write(folder.join(format!("{who}-cert.pem")), certificate.pem()).unwrap();
    std::fs::write(folder.join(format!("{who}-key.pem")), key.serialize_pem()).unwrap();
}

impl Certificates {
    /// `server`, and the clients' directories `known`, signed by the server's CA, `foreign`, signed
    /// by another, and `without`.
    pub fn make(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let (own, issuer) = authority("ours");
        let (_, other) = authority("another");
        signed(folder, "server", &["localhost", "127.0.0.1"], &issuer);
        std::fs::write(folder.join("ca-cert.pem"), &own).unwrap();
        for client in ["known", "foreign", "without"] {
            let folder = folder.join(client);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("ca-cert.pem"), &own).unwrap();
            match client {
                "known" => signed(&folder, "client", &[], &issuer),
                "foreign" => signed(&folder, "client", &[], &other),
                _ => {}
            }
        }
        for key in ["server-key.pem", "known/client-key.pem"] {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(folder.join(key), mode).unwrap();
        }
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The path of a file or of a client's directory.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}
