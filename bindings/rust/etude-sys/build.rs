//! Finds libetude: in the folder ETUDE_LIB_DIR, else where pkg-config says, else where the linker looks.
//! With ETUDE_STATIC=1 the static library is linked, and with it what it needs.
use std::env;
use std::process::Command;

fn pkg_config(flag: &str) -> Option<String> {
    let output = Command::new("pkg-config").args([flag, "etude"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn has_library(folder: &str) -> bool {
    let names = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let is_library = |name: String| name.starts_with("libetude") || name.starts_with("etude.");
    std::fs::read_dir(folder).map_or(false, |entries| entries.flatten().map(names).any(is_library))
}

fn main() {
    for name in ["ETUDE_LIB_DIR", "ETUDE_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let given = env::var("ETUDE_LIB_DIR").ok();
    if let Some(folder) = given.as_deref().filter(|folder| !has_library(folder)) {
        println!("cargo:warning=ETUDE_LIB_DIR is {folder}, where there is no libetude: set it to the folder that has it");
    }
    let folder = given.or_else(|| pkg_config("--variable=libdir"));
    if folder.is_none() {
        println!(
            "cargo:warning=ETUDE_LIB_DIR is not set, and pkg-config does not know etude, so libetude is looked for where the linker looks. \
             If that fails: install it (meson setup build --prefix DIR && meson install -C build), and set ETUDE_LIB_DIR to the folder \
             that has libetude, or PKG_CONFIG_PATH to the one that has etude.pc (docs/languages.md)"
        );
    }
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
