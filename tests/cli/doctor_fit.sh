# doctor --model: what it says of a strategy is what explain and train say of it, and it allocates nothing.
. "$SOURCE/tests/cli/harness"

model="--model resnet20 --input 3x32x32 --num-classes 10 --batch-size 64 --shards 8 --threads-per-device 1"

# all STRATEGY: MB of its largest device, as the table says; fits STRATEGY: yes, no or ?
all() { awk -v name="$1" '$1 == name && NF == 8 { print $7 }' table; }
fits() { awk -v name="$1" '$1 == name && NF == 8 { print $8 }' table; }

ok doctor $model --devices cpu:0-1 --device-memory 1G
mv out table
cat table
has table 'limit: 1.0 GB a device (--device-memory)'
awk '/^ddp/ { sum = $2 + $3 + $4 + $5 + $6; exit !(sum > $7 - 0.3 && sum < $7 + 0.3) }' table ||
    die "parts are not the sum"
grep -q '^single .*not here: ' table || die "single fits two devices"
for strategy in ddp mp pipeline; do
    ok explain $model --devices cpu:0-1 --strategy $strategy
    said=$(awk '/^stage / { table = 1; next }
        table && /^ *[0-9]/ && $7 > most { most = $7 }
        !table && /^  all / { most = $2 }
        END { print most }' out)
    awk "BEGIN { d = $said - $(all $strategy); exit !(d < 0.06 && d > -0.06) }" ||
        die "$strategy: doctor says $(all $strategy) MB, explain $said MB"
done

# between the two: one fits and one does not; train says the same
limit=$(awk "BEGIN { print int(($(all ddp) + $(all mp)) / 2 * 1000) \"K\" }")
ok doctor $model --devices cpu:0-1 --device-memory $limit
mv out table
same "$(fits ddp)" no "ddp below its memory"
same "$(fits mp)" yes "mp"
fails 2 'strategy ddp needs' explain $model --devices cpu:0-1 --strategy ddp --device-memory $limit
has err '(of cpu:0: weights '

ok doctor $model --devices cpu:0-3 --strategy hybrid --mesh data=2,pipe=2
has out 'hybrid data=2,pipe=2'
same "$(grep -c '^hybrid' out)" 1 "one strategy is asked for"
ok doctor $model --devices cpu:0-3
has out 'hybrid data=2,pipe=2'
has out 'its part of the memory that is free'

# nothing fits: exit code 5 and what to do
fails 5 'does not fit' doctor $model --devices cpu:0 --device-memory 100K
fails 5 'take more devices, more shards or a smaller batch' doctor $model --devices cpu:0 --device-memory 100K --json
"$CONVOY" doctor $model --devices cpu:0-1 --device-memory 1G --json | python3 -c '
import json, sys
doc = json.load(sys.stdin)
plans = {p["strategy"]: p for p in doc["plans"]}
assert doc["limit"] == 10 ** 9 and plans["ddp"]["fits"] and len(plans["ddp"]["devices"]) == 2, doc
assert not plans["single"]["fits"] and "one device" in plans["single"]["refused"], doc
for d in plans["pipeline"]["devices"]:
    parts = sum(d[k] for k in ("weights", "gradients", "activations", "workspace", "other"))
    assert parts == d["all"] and d["activations"] > 0, d' || die "not that JSON"
fails 2 'did you mean resnet20?' doctor --model resnet21

# train says before it happens that the machine has too little memory: here a batch of some TB
huge="--model wrn28_10 --data synthetic:3x8x8,classes=10,images=1000000 --batch-size 1000000 --threads-per-device 1"
fails 1 'of memory is free: take a smaller batch' train $huge --epochs 1 --workers 0
has err 'activations'
