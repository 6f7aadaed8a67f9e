"""Reads an operation log of Bucketload with DuckDB and pandas and compares the figures of both with
those of the run's own result.

Arguments: run directory, form (parquet or csv.zst). Prints one line per check; any failure is an
uncaught exception.
"""
import glob
import json
import sys

import duckdb
import pandas


def check(name, condition, *figures):
    if not condition:
        raise AssertionError(f"{name}: {figures}")
    print("ok", name, *figures, flush=True)


def near(a, b, share):
    return abs(a - b) <= share * max(abs(a), abs(b), 1e-12)


directory, form = sys.argv[1:3]
result = json.load(open(f"{directory}/result.json"))
files = f"{directory}/run/ops-*.{form}"
table = f"read_parquet('{files}')" if form == "parquet" else f"read_csv('{files}')"
database = duckdb.connect()


def one(query):
    return database.execute(query).fetchone()


rows, distinct = one(f"select count(*), count(distinct (phase, work, seq)) from {table}")
ended = sum(p["totals"][k] for p in result["phases"] for k in ("ok", "failed", "cancelled"))
log = result["run"]["op_log"]
check("every operation is logged or counted", rows == log["rows"] and rows + log["dropped"] == ended, rows, log["dropped"])
check("no operation is logged twice", distinct == rows)
main = next(p for p in result["phases"] if p["kind"] == "run")
window = main["window"]
for cell in main["classes"]:
    name = cell["class"]
    of_class = f"from {table} where phase = '{main['name']}' and class = '{name}' and outcome = 'ok'"
    count, mean, size = one(f"select count(*), avg(done_ns - due_ns), sum(bytes) {of_class}")
    check(f"DuckDB counts {name}", count >= cell["ok"], count, cell["ok"])
    if log["dropped"] == 0 and window["warmup_ns"] == 0:
        check(f"DuckDB counts {name} exactly", count == cell["ok"] and size == cell["bytes"], count, size)
        check(f"the mean response time of {name} agrees", near(mean, cell["response"]["mean_ns"], 1e-9), mean)
        for p in cell["response"]["percentiles"]:
            exact = one(f"select quantile_disc(done_ns - due_ns, {p['q']}) {of_class}")[0]
            check(f"p{100 * p['q']:g} of {name} agrees within a histogram step", near(exact, p["value_ns"], 0.0011), exact, p["value_ns"])
parts = "queue_ns + retry_ns + dns_ns + connect_ns + tls_ns + build_ns + send_ns + wait_ns + body_ns"
wrong = one(f"select count(*) from {table} where outcome = 'ok' and {parts} <> done_ns - due_ns")[0]
check("the parts add up to the response time", wrong == 0, wrong)
ids = one(f"select count(request_id), count(distinct request_id) from {table} where status = 200")
check("request ids were kept and differ", ids[0] > 0 and ids[0] == ids[1], *ids)

if form == "parquet":
    frames = [pandas.read_parquet(name) for name in sorted(glob.glob(files))]
else:
    frames = [pandas.read_csv(name) for name in sorted(glob.glob(files))]
frame = pandas.concat(frames)
check("pandas reads the same rows", len(frame) == rows and frame["key"].str.startswith("bucketload-").all(), len(frame))
total = int((frame["done_ns"] - frame["due_ns"]).sum())
check("pandas and DuckDB agree", total == one(f"select sum(done_ns - due_ns) from {table}")[0], total)
if form == "parquet":
    import pyarrow.parquet

    facts = pyarrow.parquet.read_schema(sorted(glob.glob(files))[0]).metadata
    epoch = int(facts[b"bucketload.epoch_unix_ns"])
    first = epoch + int(frame["due_ns"].min())
    begun = result["run"]["started_unix_ns"]
    check("the epoch puts the first operation into the run", begun - 1e9 < first < begun + 60e9, epoch)
