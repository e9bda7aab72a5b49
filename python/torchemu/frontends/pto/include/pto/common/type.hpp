// Qualifiers of the chip's compiler, which g++ does not need.
#pragma once

#include "torchemu/elements.h"

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __ubuf__
#define __ubuf__
#endif
#ifndef __cbuf__
#define __cbuf__
#endif
#ifndef __ca__
#define __ca__
#endif
#ifndef __cb__
#define __cb__
#endif
#ifndef __cc__
#define __cc__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __tf__
#define __tf__
#endif
#ifndef AICORE
#define AICORE
#endif
#ifndef PTO_INTERNAL
#define PTO_INTERNAL inline
#endif
#ifndef PTO_INST
#define PTO_INST inline
#endif
