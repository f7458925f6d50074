//! The command line; everything it does is in the library.

/// The database allocates a great deal, in small pieces and on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    tidegate::cli::main()
}
