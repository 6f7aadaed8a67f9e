//! What a configuration means, what it refuses, and how it is written.

use bucketload_core::plan::ranks::RankMapping;

use super::{Config, redact};

fn read(text: &str) -> Result<Config, String> {
    Config::read(Some(("io500.ini", text)), &[])
}

/// docs/spec/io500-mdworkbench.md section A.4.
#[test]
fn defaults_are_those_of_io500() {
    let config = Config::read(None, &[]).unwrap();
    assert_eq!(config.easy(), Ok((2 << 20, 4_960_000)));
    assert_eq!(config.segments(), Ok(10_000_000));
    assert_eq!(config.items("mdtest-hard"), Ok(1_000_000));
    assert_eq!(config.stonewall_ns(), Ok(300_000_000_000));
    assert_eq!(config.mapping(), Ok(None));
    assert!(config.settings(Vec::new()).unwrap().stonewall_ok);
    let scc = read("[global]\nscc = TRUE\n").unwrap();
    assert_eq!(scc.stonewall_ns(), Ok(30_000_000_000));
    assert!(scc.settings(Vec::new()).unwrap().stonewall_ok);
    let stored = read(&scc.ini()).unwrap();
    assert!(stored.settings(Vec::new()).unwrap().stonewall_ok);
    let short = read("[debug]\nstonewall-time = 1\n").unwrap();
    assert!(!short.settings(Vec::new()).unwrap().stonewall_ok);
}

#[test]
fn mistakes_name_file_line_and_remedy() {
    for (text, words) in [
        ("[glob]\n", ["line 1", "no such section"]),
        ("[global]\nx = 1\n", ["line 2", "datadir"]),
        (
            "[ior-easy]\n\ntransferSize = 2q\n",
            ["line 3", "such as 2m"],
        ),
        ("[ior-easy]\nblockSize = 3m\n", ["line 2", "a multiple of"]),
        (
            "[ior-easy]\nfilePerProc = FALSE\n",
            ["line 2", "remove the option"],
        ),
        ("[ior-easy-write]\nAPI = MPIIO\n", ["line 2", "[global]"]),
        ("[find]\nexternal-script = ./x\n", ["line 2", "not run"]),
        ("[find]\nnproc = 0\n", ["line 2", "above 0"]),
        (
            "[global]\ndrop-caches = 1\ndrop-caches-cmd = x\n",
            ["line 3", "not run"],
        ),
        ("[timestamp]\nx = 1\n", ["line 2", "remove the option"]),
        (
            "[mdtest-hard]\nfiles-per-dir = 9\n",
            ["line 2", "remove the option"],
        ),
        ("[find]\nrun = maybe\n", ["line 2", "TRUE or FALSE"]),
        ("[mdworkbench]\nwaitingTime = -1\n", ["line 2", "0 or more"]),
        (
            "[bucketload]\nmapping = buckets\n",
            ["line 2", "ior-libs3-bucket-per-file"],
        ),
        ("[bucketload]\nranks = 0\n", ["line 2", "4096"]),
    ] {
        let error = read(text).err().unwrap_or_default();
        for word in words.iter().chain(&["io500.ini"]) {
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }
    let wrong = Config::read(None, &["x".to_owned()]).err().unwrap();
    assert!(wrong.contains("SECTION.OPTION=VALUE"));
}

#[test]
fn all_mistakes_are_named_in_one_go() {
    let text = "[global]\napi = MPIIO\nx = 1\n[no]\ny = 2\n[ior-easy]\nfilePerProc = 0\nblockSize = 3m\n\
                [ior-hard]\ncollective = true\n[debug]\nstonewall-time = 0\n";
    let error = read(text).err().unwrap_or_default();
    let lines = [3, 4, 7, 8, 10, 12];
    assert_eq!(error.lines().count(), lines.len(), "{error}");
    for line in lines {
        assert!(
            error.contains(&format!("io500.ini: line {line}: ")),
            "{line}: {error}"
        );
    }
}

/// A file may spell out defaults, and commands that do not run.
#[test]
fn what_the_files_of_io500_say_is_accepted() {
    let config = read(
        "[global]\ndrop-caches = FALSE\ndrop-caches-cmd = sudo x\nverbosity = 1\n[timestamp]\n\
         [ior-easy]\nAPI = \nfilePerProc = 1\nuniqueDir = false\n[ior-hard]\ncollective = \n\
         [find]\nexternal-mpi-args = -n 2\nnproc = 1\n[debug]\npause-dir = ./pause/\n\
         [mdworkbench]\nwaitingTime = 0.5\n[find-hard]\nrun = FALSE\n[mdtest-hard]\nfiles-per-dir = 0\n",
    );
    let config = config.unwrap();
    assert_eq!(config.searchers("find"), Ok(Some(1)));
    assert_eq!(config.searchers("find-easy"), Ok(None));
    assert_eq!(
        config.pause_dir(),
        Some(std::path::PathBuf::from("./pause/"))
    );
    let notes = config.notes().unwrap();
    assert!(
        notes.len() == 1 && notes[0].contains("waitingTime = 0.5 has no effect"),
        "{notes:?}"
    );
}

#[test]
fn a_family_of_phases_or_a_phase_may_be_skipped() {
    let config = read("[ior-easy]\nrun = FALSE\n[find]\nrun=false\n").unwrap();
    assert!(
        config
            .skipped("ior-easy-read")
            .unwrap()
            .contains("[ior-easy]")
    );
    assert!(config.skipped("find").is_some());
    assert!(config.skipped("ior-hard-read").is_none());
    assert!(config.skipped("ior-rnd4K-easy-read").is_none());
}

#[test]
fn settings_override_the_file_and_secrets_are_hidden() {
    let api = "S3-libs3 --S3-libs3.host=h:1 --S3-libs3.access-key=AK --S3-libs3.secret-key=SK -x";
    let text = format!("[global]\napi = {api}\n[bucketload]\nmapping = native\n");
    let set = ["bucketload.mapping=files".to_owned()];
    let config = Config::read(Some(("f", &text)), &set).unwrap();
    assert_eq!(config.mapping(), Ok(Some(RankMapping::Files)));
    let ini = config.ini();
    assert!(
        !ini.contains("AK") && !ini.contains("SK") && ini.contains("host=h:1"),
        "{ini}"
    );
    assert!(redact(api).ends_with("secret-key=*** -x"));
    // The written configuration can be read back, and IO500's programs know all of the file.
    assert_eq!(read(&ini).unwrap().ini(), ini);
    let file = read(&config.file()).unwrap();
    assert_eq!(file.file(), config.file().replace("= files", "= "));
    assert_eq!(
        file.hash(),
        config.settings(Vec::new()).unwrap().config_hash
    );
    assert_ne!(file.hash(), config.hash(), "the keys count in IO500's hash");
}
