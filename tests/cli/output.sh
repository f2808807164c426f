# The output folder cannot be written, the disk is full, the loss is not finite: exit code 1, the reason, and what
# stands in the folder is whole.
. "$SOURCE/tests/cli/harness"

echo occupied >file
fails 1 "file: cannot make this folder: Not a directory" train $quick --epochs 1 --output-dir file
fails 1 "file: cannot make this folder: Not a directory" train $quick --epochs 1 --output-dir file/below
fails 1 "/proc/convoy: cannot make this folder: No such file or directory" train $quick --epochs 1 --output-dir /proc/convoy
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed
    chmod 555 closed
    fails 1 "closed" train $quick --epochs 1 --output-dir closed/run
fi
same "$(cat file)" occupied "the file in the way"

# a rate that makes weights overflow: the first operator with such a number is named, the old checkpoint stays
fails 1 "the loss is not finite: the first operator that made such a number is " train $quick --epochs 1 --lr 1e30 --output-dir diverged
grep -Eq '^convoy: error: step [0-9]+: .* is (conv2d|linear|cross_entropy) of layer [a-z0-9_]+ \(shard [01]\); lower the learning rate \(--lr\)$' err ||
    { cat err; die "no operator is named"; }
no_leftovers diverged
[ ! -e diverged/last ] || die "a checkpoint of a run without one good epoch"

# nothing is written without --output-dir
mkdir nothing
(cd nothing && "$CONVOY" train $quick --epochs 1 >../out 2>../err) || die "train without --output-dir"
[ -z "$(ls -A nothing)" ] || die "written without --output-dir: $(ls -A nothing)"
