/* Plugins: parts that need a library which not every machine has, loaded when they are wanted. */
#ifndef CVY_RT_PLUGIN_H
#define CVY_RT_PLUGIN_H

#include "base/status.h"

/* Loads libconvoy_NAME.so and finds `symbol` in it. It is looked for in the folders of CONVOY_PLUGINS (with ':'
   between them); else beside this library or program, as in a build tree, and in lib/convoy, as it is installed.
   A plugin stays until the process ends: libraries such as MPI do not survive being unloaded.
   CVY_ERR_UNSUPPORTED, with `hint` (what to install) behind the reason. Local. */
cvy_status cvy_plugin_load(const char *name, const char *symbol, const char *hint, const void **out);

#endif
