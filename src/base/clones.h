/* Loops that use the best vector instructions of the processor that they run on. */
#ifndef CVY_BASE_CLONES_H
#define CVY_BASE_CLONES_H

/* Functions marked so are compiled for several instruction sets, and the best one is taken at run time. Sanitizers
   cannot run the resolvers, so with them there is one version. Names must be unique in the library: clang 14 gives the
   resolvers of static functions external linkage. */
#ifdef CVY_SANITIZED
#define CVY_CLONES
#else
#define CVY_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

#endif
