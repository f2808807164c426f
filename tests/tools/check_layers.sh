# tools/check_layers passes the tree and names the line of every kind of forbidden include.
set -eu

"$SOURCE/tools/check_layers" "$SOURCE"

mkdir -p src/base src/graph src/ops src/rt src/engine src/data src/comm src/stray examples include/convoy
touch include/convoy/convoy.h src/base/mem.h src/graph/graph.h src/ops/conv2d.h src/rt/comm.h
touch src/engine/session.h src/data/data.h src/stray/stray.c

# allowed: down, within the part, an open header
printf '#include "graph/graph.h"\n#include "base/mem.h"\n#include <string.h>\n' > src/rt/comm.c
printf '#include "data/data.h"\n#include "rt/comm.h"\n' > src/engine/session.c
printf '#include <convoy/convoy.h>\n' > examples/good.c
rm src/stray/stray.c
"$SOURCE/tools/check_layers" . > out

# forbidden, each with the line that must be named
touch src/stray/stray.c
printf '\n#include "graph/graph.h"\n' > src/base/mem.c
printf '#include "rt/comm.h"\n' > src/data/folder.c
printf '#include "engine/session.h"\n' > src/comm/threads.c
printf '#include "../src/base/mem.h"\n' > examples/bad.c
printf '#  include "data/data.h"\n' > src/rt/backend.c
code=0
"$SOURCE/tools/check_layers" . > out || code=$?
cat out
test $code -eq 1
grep -q '^src/base/mem.c:2: .*src/graph/graph.h$' out
grep -q '^src/data/folder.c:1: .*src/rt/comm.h$' out
grep -q '^src/comm/threads.c:1: .*src/engine/session.h$' out
grep -q '^examples/bad.c:1: .*src/base/mem.h$' out
grep -q '^src/rt/backend.c:1: .*src/data/data.h$' out
grep -q '^src/stray/stray.c: belongs to no layer' out
test "$(wc -l < out)" -eq 6
