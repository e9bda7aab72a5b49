// What an orchestration tells its chip. Tasks run one after another, in the order in which they are submitted, which all
// dependencies between them allow.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "tensor.h"
#include "torchemu/host.h"

#ifndef PTO_DEVICE_FUNC
#define PTO_DEVICE_FUNC
#endif

struct PTO2OrchestrationConfig {
    int expected_arg_count = 0;
};

// A tensor argument, under the names of all versions of the interface.
struct ContinuousTensor {
    uint64_t data = 0;
    uint32_t shapes[RUNTIME_MAX_TENSOR_DIMS] = {0};
    uint32_t ndims = 0;
    DataType dtype = DataType::FLOAT32;
    Tensor tensor;

    const Tensor &ref() const { return tensor; }
    operator const Tensor &() const { return tensor; }
    uint64_t nbytes() const { return tensor.buffer.size; }
};

static_assert(sizeof(ContinuousTensor) == 112);

// What a chip's task was called with.
class ChipStorageTaskArgs {
  public:
    const ContinuousTensor &tensor(int i) const {
        if (i < 0 || i >= tensor_count_) torchemu::Operands().number(i).number(tensor_count_).call("no tensor", "", 0);
        return tensors_[i];
    }
    template <typename T = uint64_t>
    T scalar(int i) const {
        if (i < 0 || i >= scalar_count_) torchemu::Operands().number(i).number(scalar_count_).call("no scalar", "", 0);
        T value;
        std::memcpy(&value, &scalars_[i], sizeof value);
        return value;
    }
    int32_t tensor_count() const { return tensor_count_; }
    int32_t scalar_count() const { return scalar_count_; }

  private:
    const ContinuousTensor *tensors_;
    const uint64_t *scalars_;
    int32_t tensor_count_, scalar_count_;
};

using L2TaskArgs = ChipStorageTaskArgs;
using ChipTaskArgs = ChipStorageTaskArgs;
using ChipTensor = Tensor;
using OrchestrationConfig = PTO2OrchestrationConfig;

inline Tensor from_tensor_arg(const ContinuousTensor &t, bool = false, int32_t = 0) {
    return t.tensor;
}

inline const Tensor &from_tensor_arg(const Tensor &t, bool = false, int32_t = 0) { return t; }

// A tensor that the chip is to make room for.
struct TensorCreateInfo {
    uint32_t shapes[RUNTIME_MAX_TENSOR_DIMS] = {0};
    uint32_t ndims;
    DataType dtype;

    TensorCreateInfo(const uint32_t sizes[], uint32_t dimensions, DataType type = DataType::FLOAT32) : ndims(dimensions), dtype(type) {
        for (uint32_t i = 0; i < dimensions; ++i) shapes[i] = sizes[i];
    }
};

template <typename T>
inline uint64_t to_u64(T value) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    if constexpr (std::is_integral_v<T>) bits = static_cast<uint64_t>(value);
    else std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <typename T>
inline T from_u64(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

constexpr int MAX_TENSOR_ARGS = 16;
constexpr int MAX_SCALAR_ARGS = 128;

// What a kernel is to be called with: tensors, then scalars.
class Arg {
  public:
    template <typename... T>
    void add_input(const T &...tensors) {
        (add(tensors), ...);
    }
    template <typename... T>
    void add_inout(const T &...tensors) {
        (add(tensors), ...);
    }
    template <typename... T>
    void add_no_dep(const T &...tensors) {
        (add(tensors), ...);
    }
    template <typename... T>
    void add_output(const T &...tensors) {
        (add(tensors), ...);
    }

    template <typename... T>
    void add_scalar(T... values) {
        (scalar(to_u64(values)), ...);
    }

    void add_scalars(const uint64_t *values, int count) {
        for (int i = 0; i < count; ++i) scalar(values[i]);
    }

    // Tasks run in order, so whatever this one depends on is over.
    template <typename... T>
    void add_dep(const T &...) {}

    void reset() { *this = Arg(); }

    const Tensor *tensors() const { return tensors_; }
    const uint64_t *scalars() const { return scalars_; }
    int tensor_count() const { return tensor_count_; }
    int scalar_count() const { return scalar_count_; }
    const int *made() const { return made_; }
    int made_count() const { return made_count_; }

  private:
    void add(const Tensor &t) {
        if (scalar_count_ > 0) torchemu::Operands().call("tensor after scalar", "", 0);
        if (tensor_count_ == MAX_TENSOR_ARGS) torchemu::Operands().call("too many tensors", "", 0);
        tensors_[tensor_count_++] = t;
    }

    void add(const ContinuousTensor &t) { add(t.tensor); }

    // The chip makes room for the tensor, and submit gives it back.
    void add(const TensorCreateInfo &info) {
        Tensor t = make_tensor_external(nullptr, info.shapes, info.ndims, info.dtype);
        t.buffer.addr = static_cast<uint64_t>(torchemu::Operands().number(t.buffer.size).call("allocate", "", 0));
        made_[made_count_++] = tensor_count_;
        add(t);
    }

    void scalar(uint64_t value) {
        if (scalar_count_ == MAX_SCALAR_ARGS) torchemu::Operands().call("too many scalars", "", 0);
        scalars_[scalar_count_++] = value;
    }

    Tensor tensors_[MAX_TENSOR_ARGS];
    uint64_t scalars_[MAX_SCALAR_ARGS];
    int made_[MAX_TENSOR_ARGS];
    int tensor_count_ = 0, scalar_count_ = 0, made_count_ = 0;
};

using L0TaskArgs = Arg;
using CoreTaskArgs = Arg;
using PTOParam = Arg;

// A task, for those that are to follow it.
struct PTO2TaskId {};
using TaskId = PTO2TaskId;

// The tensors that the chip has made room for.
class TaskOutputTensors {
  public:
    TaskOutputTensors() = default;
    explicit TaskOutputTensors(const Arg &args) : count_(args.made_count()) {
        for (int i = 0; i < count_; ++i) tensors_[i] = args.tensors()[args.made()[i]];
    }
    bool empty() const { return count_ == 0; }
    uint32_t size() const { return static_cast<uint32_t>(count_); }
    const Tensor &get_ref(uint32_t i) const & { return tensors_[i]; }
    PTO2TaskId task_id() const { return {}; }

  private:
    Tensor tensors_[MAX_TENSOR_ARGS];
    int count_ = 0;
};

inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel, const Arg &args, TORCHEMU_CALLER) {
    torchemu::Operands()
        .number(kernel)
        .number(reinterpret_cast<int64_t>(args.tensors()))
        .number(args.tensor_count())
        .number(reinterpret_cast<int64_t>(args.scalars()))
        .number(args.scalar_count())
        .call("submit", file, line);
    return TaskOutputTensors(args);
}

inline TaskOutputTensors rt_submit_aic_task(int32_t kernel, const Arg &args, TORCHEMU_CALLER) {
    return rt_submit_aiv_task(kernel, args, file, line);
}

inline TaskOutputTensors pto2_rt_submit_aiv_task(int32_t kernel, const Arg &args, TORCHEMU_CALLER) {
    return rt_submit_aiv_task(kernel, args, file, line);
}

inline TaskOutputTensors pto2_rt_submit_aic_task(int32_t kernel, const Arg &args, TORCHEMU_CALLER) {
    return rt_submit_aiv_task(kernel, args, file, line);
}

// How long tensors are needed. Here that is until the task ends.
#define PTO2_SCOPE(...) if (true)
#define PTO2_SCOPE_GUARD(...)
#define SIMPLER_SCOPE(...) if (true)
#define SIMPLER_SCOPE_GUARD(...)
inline void rt_scope_begin() {}
inline void rt_scope_end() {}
inline void pto2_rt_scope_begin() {}
inline void pto2_rt_scope_end() {}
inline void rt_orchestration_done() {}
inline void pto2_rt_orchestration_done() {}

#define TORCHEMU_LOG(level, ...) (std::fprintf(stderr, "[" level "] " __VA_ARGS__), std::fputc('\n', stderr))
#define LOG_ERROR(...) TORCHEMU_LOG("error", __VA_ARGS__)
#define LOG_WARN(...) TORCHEMU_LOG("warning", __VA_ARGS__)
#define LOG_ALWAYS(...) TORCHEMU_LOG("info", __VA_ARGS__)
#define LOG_INFO(...) ((void)0)
#define LOG_DEBUG(...) ((void)0)
