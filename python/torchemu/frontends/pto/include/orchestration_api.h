// The name of pto_orchestration_api.h in later versions.
#pragma once
#include "pto_orchestration_api.h"
