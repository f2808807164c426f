# Output that cannot be written is an error; a run whose output nobody reads any more goes on; a file that may not grow
# is like a full disk.
. "$SOURCE/tests/cli/harness"

for arguments in --help --version models "train --help"; do
    rc=0
    "$CONVOY" $arguments >/dev/full 2>err || rc=$?
    same $rc 1 "exit code of $arguments > /dev/full"
    has err "the output could not be written"
    rc=0
    "$CONVOY" $arguments >&- 2>err || rc=$?
    same $rc 1 "exit code of $arguments without stdout"
    has err "the output could not be written"
done

{ "$CONVOY" train $quick --epochs 3 --print-freq 1 --output-dir run 2>err || echo $? >code; } | head -n 1 >first
[ ! -e code ] || { cat err; die "a run without a reader ended with $(cat code)"; }
has run/run.json '"epochs": 3,'
[ ! -s err ] || { cat err; die "a run without a reader complains"; }

rc=0
(ulimit -f 40 && "$CONVOY" train $quick --epochs 1 --output-dir limited >out 2>err) || rc=$?
same $rc 1 "exit code of a run whose files may not grow"
has err "cannot be written: File too large"
no_leftovers limited
