// What communication works on: signals, and how they change and are compared.
#pragma once

#include "pto/common/pto_tile.hpp"

namespace pto {
namespace comm {

enum class NotifyOp { AtomicAdd = 0, Set = 1 };
enum class WaitCmp { EQ, NE, GT, GE, LT, LE };
enum class DmaEngine { SDMA, URMA };

// A word that chips signal each other with.
struct Signal : GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>> {
    Signal(int32_t *word) : GlobalTensor(word) {}
};

// Rows and columns of words, of which a wait wants all.
template <int Rows, int Cols>
struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<Rows * Cols, Rows * Cols, Rows * Cols, Cols, 1>> {
    using Base = GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<Rows * Cols, Rows * Cols, Rows * Cols, Cols, 1>>;
    Signal2D(int32_t *words) : Base(words) {}
};

// A way to the DMA engines. torchemu's need no preparation.
struct AsyncSession {
    bool valid = false;
};

// The completion of a transfer.
struct AsyncEvent {
    int64_t handle = 0;
    bool valid() const { return handle != 0; }
    bool Wait(const AsyncSession &, TORCHEMU_CALLER) const {
        torchemu::Operands().number(handle).call("AsyncEvent::Wait", file, line);
        return true;
    }
};

}  // namespace comm
}  // namespace pto
