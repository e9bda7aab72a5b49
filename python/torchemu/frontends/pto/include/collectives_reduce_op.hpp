// What simpler's collective kernels do with two elements.
#pragma once

enum class CollectiveReduceOp : int { kSum, kMax, kMin, kProd };
