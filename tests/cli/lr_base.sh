# --lr-base scales the rate with the batch size; --early-stop ends a run that does not get better.
. "$SOURCE/tests/cli/harness"

# as given and as scaled: the same bits. 0.1 x 64 / 256
plain="train --data digits --model lenet5 --devices cpu:0 --shards 2 --threads-per-device 1 --workers 0 --batch-size 32"
ok $plain --accumulate 2 --epochs 1 --lr 0.025
want=$(hash_of_out) || exit 1
ok $plain --accumulate 2 --epochs 1 --lr-base 0.1 --output-dir run
has out "learning rate 0.025 = 0.1 x 64/256"
same "$(hash_of_out)" "$want" "linear"
ok train --config run/run.json
same "$(hash_of_out)" "$want" "from run.json"
ok train --config run/run.json --lr 0.025
same "$(hash_of_out)" "$want" "the command line wins"
ok $plain --accumulate 2 --epochs 1 --lr-base 0.0125 --lr-base-size 16 --lr-base-scale sqrt
has out "learning rate 0.025 = 0.0125 x sqrt(64/16)"
same "$(hash_of_out)" "$want" "root"
fails 2 "--lr and --lr-base" $plain --lr 1 --lr-base 1

# a rate of 0 never gets better than the first epoch
ok $plain --lr 0 --epochs 9 --early-stop 2 --output-dir still
has err "stopped early, after epoch 3: none has been better than epoch 1"
[ "$(grep -c '^epoch .*validation' out)" -eq 3 ] || { cat out; die "not three epochs"; }
ok train --resume still
has err "stopped early, after epoch 3"
ok train --resume still --early-stop 3
has err "stopped early, after epoch 4"
