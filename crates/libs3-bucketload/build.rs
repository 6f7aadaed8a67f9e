//! Sets the soname of the shared object to that of libs3.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = if std::env::var_os("CARGO_FEATURE_ABI2").is_some() {
        2
    } else {
        4
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libs3.so.{version}");
}
