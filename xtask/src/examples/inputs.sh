# Makes the input files of the documents' examples in the current directory: workloads, logs, runs, tokens. Called
# once for each run of `cargo xtask examples`; each page gets a copy.
set -eu

# Workloads.
bucketload show smoke | sed 's/^duration = .*/duration = "1s"/' >my.toml
cp my.toml workload.toml
sed -n '/^```toml$/,/^```$/p' "$(dirname "$0")/../../../docs/howto/first-drill.md" | grep -v '^```' >my-drill.toml
cat >workload.xml <<XML
<?xml version="1.0" encoding="UTF-8" ?>
<workload name="s3" description="s3">
  <storage type="s3" config="accesskey=$AWS_ACCESS_KEY_ID;secretkey=$AWS_SECRET_ACCESS_KEY;endpoint=$AWS_ENDPOINT_URL" />
  <workflow>
    <workstage name="init"><work type="init" workers="1" config="cprefix=s3-$PAGE-;containers=r(1,2)" /></workstage>
    <workstage name="prepare">
      <work type="prepare" workers="2" config="cprefix=s3-$PAGE-;containers=r(1,2);objects=r(1,10);sizes=c(64)KB" />
    </workstage>
    <workstage name="main">
      <work name="main" workers="4" runtime="3">
        <operation type="read" ratio="80" config="cprefix=s3-$PAGE-;containers=u(1,2);objects=u(1,10)" />
        <operation type="write" ratio="20" config="cprefix=s3-$PAGE-;containers=u(1,2);objects=u(11,20);sizes=c(64)KB" />
      </work>
    </workstage>
    <workstage name="cleanup">
      <work type="cleanup" workers="1" config="cprefix=s3-$PAGE-;containers=r(1,2);objects=r(1,20)" />
    </workstage>
    <workstage name="dispose"><work type="dispose" workers="1" config="cprefix=s3-$PAGE-;containers=r(1,2)" /></workstage>
  </workflow>
</workload>
XML
cat >io500.ini <<INI
[global]
datadir = $PWD/datadir
resultdir = $PWD/results
[debug]
stonewall-time = 1
INI

# Logs of three seconds each.
ibm() {
    i=0
    while [ $i -lt 300 ]; do
        echo "$((4073000 + i * 10)) REST.$1.OBJECT 00c0ffee5eed$((i % 40 + 1000)) 4096"
        i=$((i + 1))
    done
}
{ ibm PUT | head -40; ibm GET | tail -260; } >trace.txt
cp trace.txt IBMObjectStoreTrace000Part0
i=0
while [ $i -lt 240 ]; do
    printf '%s bench [14/Mar/2031:09:26:%02d +0000] 203.0.113.41 - Q7RN%04d REST.GET.OBJECT key%d "GET /bench/key%d HTTP/1.1" 200 - 4096 4096 7 5 "-" "client/1.0" - aG9z SigV4 TLS AuthHeader bench.s3.amazonaws.com TLSv1.3 - -\n' \
        5f0e1c $((50 + i / 80)) $i $((i % 9)) $((i % 9))
    i=$((i + 1))
done >access.log
gzip -k access.log
bzip2 -c access.log >old.bz2
i=0
while [ $i -lt 60 ]; do
    printf '{"version":"1","time":"2031-03-14T09:26:%02d.%03dZ","trigger":"incoming","api":{"name":"GetObject","bucket":"bench","object":"k/%d","status":"OK","statusCode":200,"rx":0,"tx":4096,"timeToResponseInNS":"4200000"},"remotehost":"203.0.113.41","requestID":"18SY%d","requestPath":"/bench/k/%d","accessKey":"KEY"}\n' \
        $((50 + i / 30)) $((i % 30 * 30)) $((i % 9)) $i $((i % 9))
    i=$((i + 1))
done >audit-1.json
i=0
while [ $i -lt 60 ]; do
    if [ $((i % 6)) = 0 ]; then op=W; else op=R; fi
    echo "$((i * 20)),key$((i % 9)),$op,4096"
    i=$((i + 1))
done >dump.csv

# Runs.
bucketload run my.toml --rate 50/s --op-log --out runs/before >/dev/null 2>run.log || { cat run.log >&2; exit 1; }
bucketload run my.toml --rate 50/s --op-log --out runs/after >/dev/null 2>run.log || { cat run.log >&2; exit 1; }
for name in mon tue main my-run; do cp -a runs/before runs/$name; done
for name in wed thu branch; do cp -a runs/after runs/$name; done
cp -a runs/before out
bucketload run workload.xml --target mem: --op-log --out RUN >/dev/null 2>run.log || { cat run.log >&2; exit 1; }
cp -a runs/before RUN-DIR
bucketload bundle runs/before -o evidence.bundle.tar.zst >/dev/null 2>&1
printf 'key,node\nkey0,node1\nkey1,node2\n' >placement.csv
mkdir bucketload-runs
cp -a runs/before bucketload-runs/online-service-earlier
cp -a runs/before bucketload-runs/get-20260131T235959Z
bucketload sweep get --objects 16 --size 1KiB --over workers=1,2 --duration 500ms --repetitions 1 --no-calibration \
    --out runs/my-sweep >/dev/null 2>run.log || { cat run.log >&2; exit 1; }

# Secrets and certificates.
head -c 24 /dev/urandom | base64 >token
cp token agents
cp token FILE
chmod 600 token agents FILE
printf '[lab]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >aws-credentials

# Directories that the documents assume.
mkdir -p mnt/fs mnt/data mnt/lustre/bench mnt/objects srv/objects scratch/bench shm/bench DIR completions datadir

# Prompts of a language model, of ten tokens each. Every second one is known.
for i in $(seq 0 9); do
    echo "{\"timestamp\": $((i * 20)), \"input_length\": 10, \"output_length\": 3, \"hash_ids\": [$((i / 2))]}"
done >conversation_trace.jsonl
cp conversation_trace.jsonl t.jsonl
bucketload kvcache --preset mlperf-1 --users 2 --bytes-per-token 64 --show >mlperf-1.toml
