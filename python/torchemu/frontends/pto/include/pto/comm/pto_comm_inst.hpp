// What chips do with each other's memory.
#pragma once

#include "pto/comm/comm_types.hpp"
#include "pto/common/pto_instr.hpp"

namespace pto {
namespace comm {

// Transfers go through a tile, on the pipes that load and store. Of two tiles the first does.
template <AtomicType Atomic = AtomicType::AtomicNone, typename Dst, typename Src, typename Between>
inline void TPUT(const Dst &dst, const Src &src, const Between &tile, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).add(src).add(tile).number(static_cast<int>(Atomic)).call("TPUT", file, line);
}

template <AtomicType Atomic = AtomicType::AtomicNone, typename Dst, typename Src, typename Ping, typename Pong,
          typename = std::enable_if_t<!std::is_enum_v<Pong> && !std::is_convertible_v<Pong, const char *>>>
inline void TPUT(const Dst &dst, const Src &src, const Ping &tile, const Pong &, TORCHEMU_CALLER) {
    TPUT<Atomic>(dst, src, tile, file, line);
}

template <typename Dst, typename Src, typename Between>
inline void TPUT(const Dst &dst, const Src &src, const Between &tile, AtomicType atomic, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).add(src).add(tile).number(static_cast<int>(atomic)).call("TPUT", file, line);
}

template <typename Dst, typename Src, typename Between>
inline void TGET(const Dst &dst, const Src &src, const Between &tile, TORCHEMU_CALLER) {
    torchemu::Operands().add(dst).add(src).add(tile).number(0).call("TGET", file, line);
}

template <typename Dst, typename Src, typename Ping, typename Pong,
          typename = std::enable_if_t<!std::is_convertible_v<Pong, const char *>>>
inline void TGET(const Dst &dst, const Src &src, const Ping &tile, const Pong &, TORCHEMU_CALLER) {
    TGET(dst, src, tile, file, line);
}

template <DmaEngine Engine = DmaEngine::SDMA, typename Between, typename... More>
inline bool BuildAsyncSession(const Between &, uint8_t *, AsyncSession &session, More...) {
    return session.valid = true;
}

template <DmaEngine Engine = DmaEngine::SDMA, typename Dst, typename Src>
inline AsyncEvent TPUT_ASYNC(const Dst &dst, const Src &src, const AsyncSession &, TORCHEMU_CALLER) {
    return AsyncEvent{torchemu::operate("TPUT_ASYNC", file, line, dst, src)};
}

template <DmaEngine Engine = DmaEngine::SDMA, typename Dst, typename Src>
inline AsyncEvent TGET_ASYNC(const Dst &dst, const Src &src, const AsyncSession &, TORCHEMU_CALLER) {
    return AsyncEvent{torchemu::operate("TGET_ASYNC", file, line, dst, src)};
}

template <typename Words>
inline void TNOTIFY(const Words &words, int32_t value, NotifyOp op, TORCHEMU_CALLER) {
    torchemu::Operands().add(words).number(value).number(static_cast<int>(op)).call("TNOTIFY", file, line);
}

template <typename Words>
inline void TWAIT(const Words &words, int32_t value, WaitCmp cmp, TORCHEMU_CALLER) {
    torchemu::Operands().add(words).number(value).number(static_cast<int>(cmp)).call("TWAIT", file, line);
}

template <typename Words>
inline bool TTEST(const Words &words, int32_t value, WaitCmp cmp, TORCHEMU_CALLER) {
    return torchemu::Operands().add(words).number(value).number(static_cast<int>(cmp)).call("TTEST", file, line) != 0;
}

}  // namespace comm
}  // namespace pto
