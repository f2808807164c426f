# --profile: trace.json and profile.json have their form, for replicas, stages and devices
# with streams; nothing is written without it, and the weights are the same.
. "$SOURCE/tests/cli/harness"
python3 -c 'import json' 2>/dev/null || skip "no Python 3 with its standard library"

run="train --data digits --model lenet5 --threads-per-device 1 --batch-size 256 --shards 4 --lr 0.05 --print-freq 1000"
fails 2 "--profile: give the --output-dir" $run --devices cpu:0 --epochs 1 --profile

# check FOLDER DEVICES STAGES STREAMS
check() {
    python3 - "$@" <<'PY' || die "what $1 holds is not right"
import json, sys

folder, n_devices, n_stages, has_streams = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "streams"
with open(folder + "/profile.json", encoding="utf-8") as file:
    profile = json.load(file)
assert profile["version"] == 1 and profile["model"] == "lenet5" and profile["batch_size"] == 256
assert profile["has_streams"] == has_streams
# 5 whole batches an epoch and a ragged one, which does not count; nor do the first of an epoch, and three to warm up
assert profile["steps"] == 6, profile["steps"]
assert profile["step_us"] >= profile["wait_us"] + profile["span_us"] > 0
devices = profile["devices"]
assert len(devices) == n_devices
assert {d["stage"] for d in devices} == set(range(n_stages))
assert abs(sum(d["cost"] for d in devices) - n_devices / n_stages) < 1e-4
for device in devices:
    did = [i["do"] for i in device["instructions"]]
    assert "run" in did and "update" in did and "check" in did, did
    assert ("recv" in did) == (n_stages > 1), did
    assert ("wait" in did) == (n_devices > n_stages), did
    assert all(i["us"] >= 0 for i in device["instructions"])
    assert sum(i["us"] for i in device["instructions"]) > 0
    assert any(o["us"] > 0 and o["calls"] > 0 for o in device["operators"])

with open(folder + "/trace.json", encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
names = [d["name"] for d in devices]
assert sorted(tracks.values()) == sorted([n + " compute" for n in names] + [n + " communication" for n in names] + ["data"])
spans = [e for e in events if e["ph"] == "X"]
assert {e["args"]["step"] for e in spans} == {0, 1, 2}
assert all(e["ts"] >= 0 and e["dur"] >= 0 and e["tid"] in tracks for e in spans)
assert len([e for e in spans if tracks[e["tid"]] == "data" and e["name"] == "wait for images"]) == 3
for name in names:
    kinds = {e["args"]["kind"] for e in spans if tracks[e["tid"]] == name + " compute"}
    assert {"forward", "backward", "update"} <= kinds, kinds
    talk = {e["args"]["kind"] for e in spans if tracks[e["tid"]] == name + " communication"}
    assert talk == {"idle"} or "reduce" in talk or "send" in talk, talk
PY
}

ok $run --devices cpu:0 --epochs 2 --output-dir plain
hash=$(hash_of_out)
[ ! -e plain/profile.json ] && [ ! -e plain/trace.json ] || die "a profile that nobody asked for"
ok $run --devices cpu:0-1 --epochs 2 --output-dir ddp --profile
same "$(hash_of_out)" "$hash" "weights of a run with a profile"
check ddp 2 1 host
grep -q '"profile"' ddp/run.json && die "run.json repeats --profile, which needs a folder"
ok $run --devices cpu:0-1 --strategy pipeline --epochs 2 --output-dir pipeline --profile
check pipeline 2 2 host
# nothing is left to train: what was measured stays
ok $run --devices cpu:0-1 --strategy pipeline --epochs 2 --resume pipeline --profile
check pipeline 2 2 host
ok $run --devices async:0-1 --epochs 2 --output-dir async --profile
check async 2 1 streams
"$SOURCE/tools/draw_timeline" pipeline/trace.json -o pipeline.svg || die "not drawn"

# an interrupted run has its profile too
interrupted "epoch 3/" $run --devices cpu:0 --epochs 100000 --output-dir stopped --profile
grep -q '"instructions"' stopped/profile.json || die "no profile of an interrupted run"
no_leftovers stopped

# what cannot be written is a warning: the run is done
mkdir -p full/profile.json
ok $run --devices cpu:0 --epochs 1 --output-dir full --profile
has err "there is no profile: full/profile.json"
has out "done: "
