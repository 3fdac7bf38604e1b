//! Finds libetude: in the folder ETUDE_LIB_DIR, else where pkg-config says, else where the linker looks.
//! With ETUDE_STATIC=1 the static library is linked, and with it what it needs. Crates that depend on this one see the
//! folder as DEP_ETUDE_LIB_DIR in their build scripts.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pkg_config(flag: &str) -> Option<String> {
    let output = Command::new("pkg-config").args([flag, "etude"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Files of the library in a folder.
fn libraries(folder: &str) -> Vec<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("libetude.") || name.starts_with("etude.")
    };
    fs::read_dir(folder).map_or(Vec::new(), |entries| entries.flatten().map(|e| e.path()).filter(is_library).collect())
}

/// The Python package has the library under the name that programs load it by alone, which the linker does not look for:
/// a link to it, in a folder of this crate's own, that it does.
#[cfg(unix)]
fn link_to(library: &Path) -> Option<PathBuf> {
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    let name = if library.extension().map_or(false, |end| end == "dylib") { "libetude.dylib" } else { "libetude.so" };
    let _ = fs::remove_file(out.join(name));
    std::os::unix::fs::symlink(fs::canonicalize(library).ok()?, out.join(name)).ok()?;
    Some(out)
}
#[cfg(not(unix))]
fn link_to(_library: &Path) -> Option<PathBuf> {
    None
}

fn main() {
    for name in ["ETUDE_LIB_DIR", "ETUDE_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // nothing is linked there
    }
    let folder = env::var("ETUDE_LIB_DIR").ok().or_else(|| pkg_config("--variable=libdir"));
    let is_static = env::var("ETUDE_STATIC").map_or(false, |value| value != "0");
    if let Some(folder) = &folder {
        let found = libraries(folder);
        let has = |name: &str| found.iter().any(|path| path.ends_with(name));
        if found.is_empty() {
            println!("cargo:warning=there is no libetude in {folder}: set ETUDE_LIB_DIR to the folder that has it");
        } else if is_static && !has("libetude.a") && !has("etude.lib") {
            println!("cargo:warning=ETUDE_STATIC is set, and there is no libetude.a in {folder}");
        }
        if !is_static && found.len() == 1 && !has("libetude.so") && !has("libetude.dylib") {
            if let Some(own) = link_to(&found[0]) {
                println!("cargo:rustc-link-search=native={}", own.display());
            }
        }
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:lib_dir={folder}");
    } else {
        println!(
            "cargo:warning=ETUDE_LIB_DIR is not set, and pkg-config does not know etude, so libetude is looked for where the linker looks. \
             If that fails: install it (meson setup build --prefix DIR && meson install -C build), and set ETUDE_LIB_DIR to the folder \
             that has libetude, or PKG_CONFIG_PATH to the one that has etude.pc (docs/languages.md)"
        );
    }
    if is_static {
        println!("cargo:rustc-link-lib=static=etude");
        println!("cargo:rustc-link-lib=m");
        println!("cargo:rustc-link-lib=pthread");
    } else {
        println!("cargo:rustc-link-lib=etude");
    }
}
