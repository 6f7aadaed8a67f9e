//! Runs simulated agents for the coordinator at an address:
//!
//! ```text
//! bucketload run get --target null: --rate 1 --duration 30s --launch k8s:1000 --agents-listen 7401
//! simulated_agents 127.0.0.1:7401 1000 VERSION
//! ```

use bucketload_agents::{Access, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(address), Some(agents), Some(version)) = (args.next(), args.next(), args.next())
    else {
        return Err("usage: simulated_agents ADDRESS AGENTS VERSION".into());
    };
    let agents: u32 = agents.parse()?;
    let access = Access::new(version, None, None);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..agents {
            let (address, access) = (address.clone(), access.clone());
            all.spawn(async move { simulate::agent(&address, &access).await });
        }
        while let Some(ended) = all.join_next().await {
            ended??;
        }
        Ok(())
    })
}
