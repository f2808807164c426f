# run.json repeats its run; metrics.jsonl has the documented keys.
. "$SOURCE/tests/cli/harness"

ok train $quick --shards 3 --epochs 2 --pad 1 --momentum 0.8 --wd 5e-4 --label-smoothing 0.1 --seed 3 --output-dir first
want=$(hash_of_out) || exit 1
has first/run.json "\"weights_xxh3\": \"$want\""
has first/run.json '"shards": 3'
ok train --config first/run.json --output-dir second
same "$(hash_of_out)" "$want" "the run of run.json"
ok train --config first/run.json --devices cpu:0-1 # S and T stand in run.json: the devices do not matter
same "$(hash_of_out)" "$want" "the run of run.json on two devices"
ok train --config first/run.json --seed 4 # the command line wins
[ "$(hash_of_out)" != "$want" ] || die "--seed was not heard"
[ -f second/run.json ] || die "no second/run.json"

grep -q '"event":"step"' first/metrics.jsonl || die "no step in metrics.jsonl"
same "$(grep -c '"event":"epoch"' first/metrics.jsonl)" 2 "epochs in metrics.jsonl"
same "$(grep -ao val/top1 first/events.out.tfevents.convoy | wc -l)" 2 "epochs in TensorBoard's file"
same "$(grep -ao step/loss first/events.out.tfevents.convoy | wc -l)" "$(grep -c '"event":"step"' first/metrics.jsonl)" \
    "steps in TensorBoard's file"
for key in epoch lr train_loss train_top1 val_loss val_top1 val_top5 val_images images_per_s; do
    grep '"event":"epoch"' first/metrics.jsonl | grep -q "\"$key\":" || die "no $key in metrics.jsonl"
    has "$SOURCE/docs/metrics.md" "\`$key\`"
done
same "$(grep -c '"val_images":360' first/metrics.jsonl)" 2 "each of the 360 images counts once"

# eval takes what it knows from the run's flags; names that no command knows are slips
ok eval --config first/run.json --weights first/last
has out "of 360 images"
echo '{"flags": {"lr": 0.1, "epoch": 3}}' >bad.json
fails 2 "bad.json: unknown flag epoch" eval --config bad.json --weights first/last

echo '{"flags": {"modle": "lenet5"}}' >bad.json
fails 2 "bad.json: unknown flag modle; did you mean --model?" train --config bad.json
echo '{"flags": ' >bad.json
fails 2 "bad.json: line" train --config bad.json
