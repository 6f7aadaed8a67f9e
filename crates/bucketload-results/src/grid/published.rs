//! The study's results, corrected (docs/spec/cs597-grid.md sections 5 and 6): A_mean in MiB/s, R_mean in files/s.
//!
//! Columns are HDFS, S3, CephFS and FusionFS, each with 4, 16 and 64 nodes. These figures come from other machines,
//! with clients that were often the limit; they are for orientation only.

/// The systems, in the order of the columns.
pub const SYSTEMS: [&str; 4] = ["HDFS", "S3", "CephFS", "FusionFS"];
/// The numbers of nodes of each system.
pub const NODES: [u32; 3] = [4, 16, 64];

/// A_mean of rows g1 to g8, writing.
const WRITE: [[f64; 12]; 8] = [
    [
        0.290, 0.457, 1.585, 0.749, 2.493, 9.561, 0.883, 1.309, 0.862, 0.749, 2.981, 12.52,
    ],
    [
        2.264, 7.082, 5.857, 6.323, 19.82, 75.39, 8.377, 17.84, 12.77, 8.568, 31.25, 118.8,
    ],
    [
        19.78, 61.58, 156.4, 31.72, 105.8, 381.7, 82.38, 159.2, 101.7, 59.12, 227.2, 903.5,
    ],
    [
        143.3, 456.2, 1336.5, 225.0, 769.4, 3122.1, 249.1, 361.4, 952.6, 153.2, 610.3, 2423.5,
    ],
    [
        276.5, 1172.6, 2400.1, 316.0, 1178.9, 4541.7, 112.8, 393.0, 1257.9, 173.1, 688.0, 2887.9,
    ],
    [
        341.9, 1316.5, 4131.4, 283.5, 1067.2, 4402.4, 127.3, 427.6, 1630.7, 177.9, 704.0, 2873.5,
    ],
    [
        292.6, 1150.5, 5270.1, 290.2, 1150.3, 4475.3, 129.9, 474.5, 1682.5, 183.4, 677.0, 2889.4,
    ],
    [
        294.8, 1282.1, 3120.4, 298.8, 1104.7, 4486.6, 119.3, 431.7, 1752.0, 177.3, 705.2, 2778.5,
    ],
];
/// A_mean of rows g1 to g8, reading.
const READ: [[f64; 12]; 8] = [
    [
        1.756, 5.708, 81.14, 0.185, 0.662, 2.495, 1.084, 3.156, 2.439, 1.487, 5.969, 23.79,
    ],
    [
        7.102, 25.00, 45.45, 2.065, 6.986, 22.49, 11.68, 79.37, 53.16, 14.92, 59.03, 236.8,
    ],
    [
        60.10, 233.6, 643.1, 15.11, 53.44, 235.4, 117.1, 431.0, 485.6, 118.8, 488.0, 1898.2,
    ],
    [
        325.5, 1552.8, 6600.7, 44.69, 206.4, 1698.9, 118.3, 628.0, 2145.2, 284.3, 1281.7, 4873.6,
    ],
    [
        201.9, 936.3, 2904.7, 115.9, 959.6, 2766.0, 162.2, 436.8, 2541.0, 226.4, 906.4, 3745.8,
    ],
    [
        241.5, 913.7, 4686.0, 209.1, 1193.5, 3808.7, 120.7, 449.2, 1759.8, 227.8, 884.3, 3694.5,
    ],
    [
        208.6, 911.1, 3646.3, 308.3, 1231.7, 4730.3, 99.71, 333.2, 1376.3, 202.0, 793.3, 3232.1,
    ],
    [
        209.5, 905.5, 2329.5, 181.7, 527.6, 2107.0, 133.9, 401.3, 1497.5, 202.0, 806.8, 3247.8,
    ],
];
/// R_mean of row g0: writing and reading.
const EMPTY: [[f64; 12]; 2] = [
    [
        542.4, 1603.0, 1859.6, 1434.6, 5383.3, 12030.4, 1244.1, 1488.5, 979.9, 801.5, 3277.1,
        13186.0,
    ],
    [
        2539.7, 7529.4, 17066.7, 207.4, 759.7, 2722.8, 1250.2, 1520.2, 848.6, 1597.1, 6272.8,
        25821.0,
    ],
];

/// The study's figures for a step (`write` or `read`) of a row, by system and number of nodes: MiB/s, for
/// row g0 files/s. `None` for other rows.
#[must_use]
pub fn published(step: &str, row: &str) -> Option<&'static [f64; 12]> {
    let read = match step {
        "write" => false,
        "read" => true,
        _ => return None,
    };
    let number: usize = row.strip_prefix('g')?.parse().ok()?;
    match (number, read) {
        (0, _) => Some(&EMPTY[usize::from(read)]),
        (1..=8, false) => Some(&WRITE[number - 1]),
        (1..=8, true) => Some(&READ[number - 1]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::published;

    #[test]
    fn the_tables_are_those_of_the_audit() {
        // S3-64 and CephFS-64, the first and the last row.
        assert_eq!(published("write", "g1").unwrap()[5], 9.561);
        assert_eq!(published("write", "g8").unwrap()[8], 1752.0);
        assert_eq!(published("read", "g7").unwrap()[5], 4730.3);
        assert_eq!(published("read", "g0").unwrap()[11], 25821.0);
        assert_eq!(published("delete", "g1"), None);
        assert_eq!(published("write", "touch"), None);
        assert_eq!(published("read", "200x4096"), None);
    }
}
