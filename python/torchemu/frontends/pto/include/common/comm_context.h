#pragma once

#include "platform_comm/comm_context.h"
