#pragma once

#include "pto_orchestration_api.h"
