/* What hybrid takes from pipeline. */
#ifndef CVY_STRATEGY_PIPELINE_H
#define CVY_STRATEGY_PIPELINE_H

#include "strategy/strategy.h"

cvy_status cvy_pipeline_schedule(const struct cvy_strategy_input *input, struct cvy_program *out);

#endif
