use super::{FIRST_PORT, LaunchedRank, Launcher, PORTS, detect, port_of};

fn detected(variables: &[(&str, &str)]) -> Option<LaunchedRank> {
    let find = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    detect(&find).unwrap()
}

#[test]
fn srun_provides_rank_size_and_hosts() {
    let found = detected(&[
        ("SLURM_PROCID", "3"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_JOB_ID", "7"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_NTASKS", "8"),
        ("SLURM_STEP_NODELIST", "n[1-2]"),
        // `srun --mpi=pmi2` sets these too.
        ("PMI_RANK", "9"),
    ])
    .unwrap();
    assert_eq!(found.launcher, Launcher::Slurm);
    assert_eq!((found.rank, found.size), (3, Some(4)));
    assert_eq!(found.leader.as_deref(), Some("n1"));
    assert_eq!(found.port, Some(port_of("slurm 7.0")));
}

#[test]
fn a_plain_program_in_a_batch_script_is_alone() {
    let batch = [
        ("SLURM_PROCID", "0"),
        ("SLURM_JOB_ID", "7"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_JOB_NODELIST", "n[1-2]"),
    ];
    assert_eq!(detected(&batch), None);
}

#[test]
fn mpirun_inside_a_batch_job_has_its_own_ranks() {
    let found = detected(&[
        ("OMPI_COMM_WORLD_RANK", "2"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("PMIX_NAMESPACE", "123.1"),
        // The launcher's own, 0 on every first node.
        ("SLURM_PROCID", "0"),
        ("SLURM_STEP_ID", "1"),
        ("SLURM_JOB_ID", "7"),
        ("SLURM_JOB_NODELIST", "n[2-3]"),
    ])
    .unwrap();
    assert_eq!(found.launcher, Launcher::OpenMpi);
    assert_eq!((found.rank, found.size), (2, Some(4)));
    assert_eq!(found.leader.as_deref(), Some("n2"));
    assert_eq!(found.port, Some(port_of("123.1")));
}

#[test]
fn mpirun_alone_names_its_own_host() {
    let with = |extra: (&str, &str)| {
        let base = ("OMPI_COMM_WORLD_RANK", "0");
        detected(&[base, ("OMPI_COMM_WORLD_SIZE", "4"), extra]).unwrap()
    };
    let four = with((
        "OMPI_MCA_orte_hnp_uri",
        "2211315712.0;tcp://10.77.0.1,172.17.0.1:41223;udp://x",
    ));
    assert_eq!(four.leader.as_deref(), Some("10.77.0.1"));
    let five = with(("PMIX_NAMESPACE", "prterun-node-a7-4711@1"));
    assert_eq!(five.leader.as_deref(), Some("node-a7"));
    assert_eq!(with(("PMIX_NAMESPACE", "slurm.pmix.1.0")).leader, None);
}

#[test]
fn other_launchers() {
    let pmix = detected(&[("PMIX_RANK", "1"), ("BUCKETLOAD_AGENTS", "2")]).unwrap();
    assert_eq!((pmix.launcher, pmix.size), (Launcher::Pmix, Some(2)));
    let pmi = detected(&[("PMI_RANK", "1"), ("PMI_SIZE", "3")]).unwrap();
    assert_eq!((pmi.launcher, pmi.size), (Launcher::Pmi, Some(3)));
    let kubernetes = detected(&[("JOB_COMPLETION_INDEX", "5")]).unwrap();
    assert_eq!(kubernetes.launcher, Launcher::Kubernetes);
    assert_eq!((kubernetes.rank, kubernetes.size), (5, None));
    assert_eq!(detected(&[]), None);
}

#[test]
fn nonsense_is_refused() {
    for variables in [
        [("PMI_RANK", "x"), ("PMI_SIZE", "3")],
        [("PMI_RANK", "3"), ("PMI_SIZE", "3")],
    ] {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        assert!(detect(&find).is_err());
    }
}

#[test]
fn ports_are_spread_over_the_range() {
    let ports: std::collections::BTreeSet<u16> = (0..1000)
        .map(|job| port_of(&format!("slurm {job}.0")))
        .collect();
    assert!(
        ports
            .iter()
            .all(|p| (FIRST_PORT..FIRST_PORT + PORTS as u16).contains(p))
    );
    // A thousand draws of ten thousand leave some 952 different ones.
    assert!(ports.len() > 900, "{}", ports.len());
}
