# --resume auto: the newest whole checkpoint of --output-dir, broken ones are named and passed over, and where there has
# been none a new run begins; so one command starts a run and goes on with it, and nothing is written over.
. "$SOURCE/tests/cli/harness"

train="train $quick --epochs 3 --output-dir run --resume auto"
fails 2 "--resume auto: give the --output-dir" train $quick --resume auto
fails 2 "--resume auto: --test-only" train $quick --resume auto --output-dir run --test-only

ok $train
has err "convoy: --resume auto: no checkpoint is in run yet, a new run begins"
want=$(hash_of_out) || exit 1
ok train --output-dir run --resume auto # flags come from its run.json
has err "convoy: --resume auto takes run/last, after update 36"
same "$(hash_of_out)" "$want" "a finished run, resumed"

# an older checkpoint than last/, which is broken
ok train $quick --epochs 2 --output-dir two # no schedule: epochs are those of the longer run
cp -r run hurt
rm -r hurt/best
cp -r two/last hurt/best
printf x | dd of=hurt/last/optimizer.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null
ok train --output-dir hurt --resume auto
has err "convoy: warning: --resume auto passes over hurt/last: hurt/last/optimizer.safetensors: is damaged: its xxh3 is"
has err "convoy: --resume auto takes hurt/best, after update 24"
same "$(hash_of_out)" "$want" "gone on with from the older checkpoint"

# one without a manifest is never taken, neither is one cut off in the middle; and no new run takes their place
cp -r run bare
rm bare/last/manifest.json bare/best/state.json
cp -r bare bare.before
fails 3 "--resume auto: no checkpoint in bare is whole, the warnings say why: move bare away, or" \
    train --output-dir bare --resume auto --epochs 1
has err "passes over bare/last: it has no manifest.json"
has err "passes over bare/best: bare/best/state.json: "
diff -r bare.before bare || die "a run that cannot go on is not as it was"

# killed before, or in, its first checkpoint: nothing of the old run is left
rm -r bare/last bare/best
mkdir bare/last.new
printf x >bare/last.new/model.safetensors
ok train --output-dir bare --resume auto --epochs 1
has err "no checkpoint is in bare yet, a new run begins"
same "$(grep -c '"event":"epoch"' bare/metrics.jsonl)" 1 "epochs in the metrics of a run that began anew"
no_leftovers bare

# only best/ is left
cp -r run only
rm -r only/last
fails 3 "only/last: no checkpoint is there, but only/best is one: --resume only/best goes on from it" train --resume only
fails 2 "only holds a run already: --resume only/best goes on with it" train $quick --output-dir only

# of a link only the link is replaced: what it points to is another run's
ok train $quick --epochs 1 --output-dir another
cp -r another another.before
cp -r another linked
rm -r linked/last
ln -s ../another/last linked/last
ok train --resume linked --epochs 2
diff -r another.before another || die "a run that another one's last/ points to is not as it was"
[ ! -L linked/last ] && same "$(sed -n 's/.*"epoch": *\([0-9]*\).*/\1/p' linked/last/state.json)" 2 "epochs in linked/last"
no_leftovers linked

# what was moved aside, when the power went
cp -r run aside
mv aside/last aside/last.old
mkdir aside/last.new
ok train --output-dir aside --resume auto
has err "convoy: --resume auto takes aside/last, after update 36"
no_leftovers aside

fails 2 "--resume and --overwrite" train --output-dir run --resume auto --overwrite
