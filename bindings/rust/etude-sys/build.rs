//! Finds libetude: in the folder ETUDE_LIB_DIR, else where pkg-config says, else where the linker looks.
//! With ETUDE_STATIC=1 the static library is linked, and with it what it needs.
use std::env;
use std::process::Command;

fn pkg_config(flag: &str) -> Option<String> {
    let output = Command::new("pkg-config").args([flag, "etude"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    for name in ["ETUDE_LIB_DIR", "ETUDE_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let folder = env::var("ETUDE_LIB_DIR").ok().or_else(|| pkg_config("--variable=libdir"));
    if let Some(folder) = folder {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:lib_dir={folder}");
    }
    if env::var("ETUDE_STATIC").map_or(false, |value| value != "0") {
        println!("cargo:rustc-link-lib=static=etude");
        println!("cargo:rustc-link-lib=m");
        println!("cargo:rustc-link-lib=pthread");
    } else {
        println!("cargo:rustc-link-lib=etude");
    }
}
