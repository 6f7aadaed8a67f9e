//! A grid as CSV (RFC 4180): one row per cell and step. No field needs quotes.

use super::GridResult;

const HEAD: &str = "row,files_per_process,size_bytes,processes,streams,step,runs,a_mean_mib_s,a_slow_mib_s,\
a_wall_mib_s,a_sum_mib_s,r_mean_per_s,r_slow_per_s,r_wall_per_s,r_sum_per_s,t_mean_s,t_max_s,wall_s,cv,\
max_over_mean,start_skew_s,p50_s,p90_s,p99_s,max_s,failed,floor_s,floor_ratio,client_bound,uneven,spread";

/// The table with a header line.
#[must_use]
pub fn csv(result: &GridResult) -> String {
    let mut out = format!("{HEAD}\n");
    for cell in &result.cells {
        for step in &cell.steps {
            let f = &step.figures;
            let numbers = [
                f.a_mean,
                f.a_slow,
                f.a_wall,
                f.a_sum,
                f.r_mean,
                f.r_slow,
                f.r_wall,
                f.r_sum,
                f.mean_s,
                f.max_s,
                f.wall_s,
                f.cv,
                f.max_over_mean,
                step.start_skew_s,
            ];
            let maybe = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
            let mut columns = vec![
                cell.row.clone(),
                cell.files.to_string(),
                cell.size_bytes.to_string(),
                cell.processes.to_string(),
                result.header.streams.to_string(),
                step.step.clone(),
                step.runs.to_string(),
            ];
            columns.extend(numbers.iter().chain(&step.latency_s).map(f64::to_string));
            columns.push(step.failed.to_string());
            columns.extend([maybe(step.floor_s), maybe(step.floor_ratio)]);
            columns.extend([step.client_bound, step.uneven].map(|flag| flag.to_string()));
            columns.push(step.spread.to_string());
            out += &columns.join(",");
            out.push('\n');
        }
    }
    out
}
