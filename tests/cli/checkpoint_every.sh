# --checkpoint-every N: what was killed in the middle of an epoch goes on from its newest checkpoint, with the same bits
# on other devices, under another strategy, with other workers, and with everything that has a memory: momentum, a schedule,
# the average of the weights, mixup. metrics.jsonl then has every update once.
. "$SOURCE/tests/cli/harness"

train="train $quick --batch-size 16 --epochs 3 --pad 1 --lr-scheduler cosine --lr-warmup-epochs 1 --mixup-alpha 0.4 --model-ema
    --model-ema-steps 2 --print-freq 1"
ok $train --output-dir whole
want=$(hash_of_out) || exit 1

# killed in epoch 2 of 3, after step 20 of 90, and at most a page of lines later: when a checkpoint begins the one before is
# whole, so the newest is of update 100 to 175
"$SOURCE/tests/cli/signal_at" KILL "epoch 2/3, step 20/" "$CONVOY" $train --checkpoint-every 5 --output-dir killed
same $? 137 "the exit code after a kill"
cp -r killed pipe
cp -r killed ddp

goes_on() {
    has err "after update $1"
    has out "going on at epoch 2, step $(($1 - 90 + 1))"
    same "$(hash_of_out)" "$want" "killed, and gone on $2"
    cmp whole/last/model.safetensors "$3"/last/model.safetensors || die "the weights differ $2"
    cmp whole/last/ema.safetensors "$3"/last/ema.safetensors || die "the averages differ $2"
    cmp whole/last/optimizer.safetensors "$3"/last/optimizer.safetensors || die "the optimiser's state differs $2"
    # the same lines, but for speeds and times
    for run in whole "$3"; do
        sed 's/"[a-z_]*\(_s\|_per_s\)":[^,}]*//g' $run/metrics.jsonl >$run.lines
    done
    cmp whole.lines "$3".lines || { diff whole.lines "$3".lines; die "the metrics differ $2"; }
    no_leftovers "$3"
}
updates=$(sed -n 's/.*"updates": *\([0-9]*\).*/\1/p' killed/last/state.json)
[ "$updates" -ge 100 ] && [ $((updates % 5)) -eq 0 ] || die "the checkpoint is of update $updates"
ok train --output-dir killed --resume auto
goes_on $updates "as it was" killed
ok train --output-dir pipe --resume auto --strategy pipeline --devices cpu:0-1 --workers 2
goes_on $updates "as a pipeline" pipe
ok train --output-dir ddp --resume auto --strategy ddp --devices cpu:0-1 --workers 1
goes_on $updates "as replicas" ddp
