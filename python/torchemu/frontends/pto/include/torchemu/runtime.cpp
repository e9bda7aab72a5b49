// What is linked to each compiled kernel. It enters and leaves the kernel, and it is what g++'s instrumentation calls:
// every access to memory, every block of code and every undefined operation comes by here before it happens. What is
// wrong is told to Python, and the kernel is left; the process goes on.
//
// This file itself is compiled without instrumentation.

#include <dlfcn.h>
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>

#define HIDDEN __attribute__((visibility("hidden")))
#define SHOWN extern "C" __attribute__((visibility("default")))
#define WHERE reinterpret_cast<uintptr_t>(__builtin_return_address(0))
#define DEPTH reinterpret_cast<uintptr_t>(__builtin_frame_address(0))

// Python: the operation's name, its words, their number, the file and the line. Other than 0 says to leave the kernel.
using Callback = int (*)(const char *, int64_t *, int, const char *, int);

namespace {

// A kernel that runs. It lies on the kernel's own stack.
struct Run {
    Callback call;
    uintptr_t low, high;  // memory that Python has made for the kernel's arguments
    uintptr_t bottom;     // of the stack
    uint64_t blocks = 0;  // of code, since the last operation
    uintptr_t thrown = 0, thrown_end = 0;  // the last exception's bytes
    uintptr_t thrown_at = 0;
    sigjmp_buf leave;
};

Run *running = nullptr;  // nullptr outside of kernels, and while Python runs

constexpr uint64_t most_blocks = 1ull << 31;
constexpr uintptr_t most_stack = 2 << 20;
constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction before[sizeof signals / sizeof *signals];

extern "C" HIDDEN const char __ehdr_start;
extern "C" HIDDEN const char _end;

uintptr_t module_start() { return reinterpret_cast<uintptr_t>(&__ehdr_start); }

// Calls Python, which may let other kernels run meanwhile.
void call(const char *operation, int64_t *words, int count, const char *file, int line) {
    Run *own = running;
    if (own == nullptr) return;
    running = nullptr;
    int stop = own->call(operation, words, count, file, line);
    own->blocks = 0;
    running = own;
    if (stop != 0) siglongjmp(own->leave, 1);
}

// Reports a place in the code, where there is no line.
void report(const char *what, uintptr_t place, int64_t more = 0) {
    int64_t words[] = {0, static_cast<int64_t>(place - module_start()), more};
    call(what, words, 3, "", 0);
}

// Tells Python of an access to memory that is not the kernel's own.
void access(uintptr_t address, size_t size, int kind, uintptr_t place, uintptr_t depth) {
    if (running == nullptr) return;
    if (address >= depth && address + size <= running->bottom) return;
    if (address >= running->low && address + size <= running->high) return;
    if (address >= running->thrown && address + size <= running->thrown_end) return;
    if (address >= module_start() && address + size <= reinterpret_cast<uintptr_t>(&_end)) return;
    int64_t words[] = {0, static_cast<int64_t>(address), static_cast<int64_t>(size), kind, static_cast<int64_t>(place - module_start())};
    call("access", words, 5, "", 0);
}

// Tells where in the code a signal has come, from the beginning of the module; -1 where that is other code.
int64_t interrupted(void *context) {
    auto *state = static_cast<ucontext_t *>(context);
#if defined(__x86_64__)
    auto place = static_cast<uintptr_t>(state->uc_mcontext.gregs[REG_RIP]);
#else
    auto place = static_cast<uintptr_t>(state->uc_mcontext.pc);
#endif
    bool own = place >= module_start() && place < reinterpret_cast<uintptr_t>(&_end);
    return own ? static_cast<int64_t>(place - module_start()) + 1 : -1;
}

void caught(int signal, siginfo_t *info, void *context) {
    if (running != nullptr) {
        Run *own = running;
        int64_t words[] = {0, interrupted(context), signal};
        running = nullptr;
        own->call("signal", words, 3, "", 0);
        siglongjmp(own->leave, 1);
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
        if (signals[i] != signal) continue;
        if (before[i].sa_flags & SA_SIGINFO) return before[i].sa_sigaction(signal, info, context);
        if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) return before[i].sa_handler(signal);
        sigaction(signal, &before[i], nullptr);
    }
}

__attribute__((constructor)) void listen() {
    struct sigaction own = {};
    own.sa_sigaction = caught;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) sigaction(signals[i], &own, &before[i]);
}

// Runs a kernel to its end; what it throws is reported.
void enter(void (*entry)(void *), void *argument) {
    try {
        entry(argument);
    } catch (const std::exception &error) {
        report("exception", running->thrown_at, reinterpret_cast<int64_t>(error.what()));
    } catch (...) {
        report("exception", running->thrown_at);
    }
}

}  // namespace

// Runs a kernel, or an orchestration, with one argument.
SHOWN void torchemu_run(void (*entry)(void *), void *argument, Callback callback, uintptr_t low, uintptr_t high) {
    Run own;
    own.call = callback, own.low = low, own.high = high, own.bottom = DEPTH;
    Run *outer = running;
    if (sigsetjmp(own.leave, 1) == 0) {
        running = &own;
        enter(entry, argument);
    }
    running = outer;
}

extern "C" HIDDEN void torchemu_call(const char *operation, int64_t *words, int count, const char *file, int line) {
    call(operation, words, count, file, line);
}

// -- accesses: what -fsanitize=thread calls

#define ACCESS(name, size, kind) \
    extern "C" HIDDEN void name(void *p) { access(reinterpret_cast<uintptr_t>(p), size, kind, WHERE, DEPTH); }
#define ACCESSES(size)                           \
    ACCESS(__tsan_read##size, size, 0)           \
    ACCESS(__tsan_write##size, size, 1)          \
    ACCESS(__tsan_unaligned_read##size, size, 0) \
    ACCESS(__tsan_unaligned_write##size, size, 1) \
    ACCESS(__tsan_volatile_read##size, size, 2)  \
    ACCESS(__tsan_volatile_write##size, size, 1) \
    ACCESS(__tsan_unaligned_volatile_read##size, size, 2) \
    ACCESS(__tsan_unaligned_volatile_write##size, size, 1)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" HIDDEN void __tsan_read_range(void *p, size_t n) { access(reinterpret_cast<uintptr_t>(p), n, 0, WHERE, DEPTH); }
extern "C" HIDDEN void __tsan_write_range(void *p, size_t n) { access(reinterpret_cast<uintptr_t>(p), n, 1, WHERE, DEPTH); }
extern "C" HIDDEN void __tsan_vptr_read(void **p) { access(reinterpret_cast<uintptr_t>(p), 8, 0, WHERE, DEPTH); }
extern "C" HIDDEN void __tsan_vptr_update(void **p, void *) { access(reinterpret_cast<uintptr_t>(p), 8, 1, WHERE, DEPTH); }
extern "C" HIDDEN void __tsan_init() {}
extern "C" HIDDEN void __tsan_func_entry(void *) {}
extern "C" HIDDEN void __tsan_func_exit() {}

// Atomic operations. Kernels run one at a time, so they need only be whole.
#define ATOMIC(bits, T)                                                                                            \
    extern "C" HIDDEN T __tsan_atomic##bits##_load(const volatile T *p, int) {                                     \
        access(reinterpret_cast<uintptr_t>(p), sizeof(T), 2, WHERE, DEPTH);                                        \
        return *p;                                                                                                 \
    }                                                                                                              \
    extern "C" HIDDEN void __tsan_atomic##bits##_store(volatile T *p, T v, int) {                                  \
        access(reinterpret_cast<uintptr_t>(p), sizeof(T), 1, WHERE, DEPTH);                                        \
        *p = v;                                                                                                    \
    }                                                                                                              \
    extern "C" HIDDEN T __tsan_atomic##bits##_fetch_add(volatile T *p, T v, int) {                                 \
        access(reinterpret_cast<uintptr_t>(p), sizeof(T), 1, WHERE, DEPTH);                                        \
        T old = *p;                                                                                                \
        *p = old + v;                                                                                              \
        return old;                                                                                                \
    }
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

// -- ranges of memory, which are not instrumented where they are copied as a whole

extern "C" HIDDEN void *memcpy(void *to, const void *from, size_t n) {
    access(reinterpret_cast<uintptr_t>(from), n, 0, WHERE, DEPTH);
    access(reinterpret_cast<uintptr_t>(to), n, 1, WHERE, DEPTH);
    for (size_t i = 0; i < n; ++i) static_cast<volatile char *>(to)[i] = static_cast<const char *>(from)[i];
    return to;
}

extern "C" HIDDEN void *memmove(void *to, const void *from, size_t n) {
    if (to <= from) return memcpy(to, from, n);
    access(reinterpret_cast<uintptr_t>(from), n, 0, WHERE, DEPTH);
    access(reinterpret_cast<uintptr_t>(to), n, 1, WHERE, DEPTH);
    for (size_t i = n; i-- > 0;) static_cast<volatile char *>(to)[i] = static_cast<const char *>(from)[i];
    return to;
}

extern "C" HIDDEN void *memset(void *to, int value, size_t n) {
    access(reinterpret_cast<uintptr_t>(to), n, 1, WHERE, DEPTH);
    for (size_t i = 0; i < n; ++i) static_cast<volatile char *>(to)[i] = static_cast<char>(value);
    return to;
}

// -- blocks of code: what -fsanitize-coverage=trace-pc calls

extern "C" HIDDEN void __sanitizer_cov_trace_pc() {
    if (running == nullptr) return;
    if (++running->blocks > most_blocks) report("no end", WHERE);
    if (running->bottom - DEPTH > most_stack) report("too deep", WHERE);
}

// -- undefined operations: what -fsanitize=integer-divide-by-zero and the like call

namespace {

struct Place {
    const char *file;
    uint32_t line, column;
};

void undefined(const char *what, const Place *at, int64_t more = 0) {
    int64_t words[] = {0, more};
    call(what, words, 2, at->file, static_cast<int>(at->line));
}

}  // namespace

extern "C" HIDDEN void __ubsan_handle_divrem_overflow(const Place *at, void *, void *) { undefined("division", at); }
extern "C" HIDDEN void __ubsan_handle_out_of_bounds(const Place *at, void *i) { undefined("index", at, reinterpret_cast<int64_t>(i)); }
extern "C" HIDDEN void __ubsan_handle_builtin_unreachable(const Place *at) {
    undefined("unreachable", at);
    __builtin_trap();
}
extern "C" HIDDEN void __ubsan_handle_missing_return(const Place *at) {
    undefined("no return", at);
    __builtin_trap();
}

// -- exceptions: where they are and come from

namespace {

// A function of the C++ library, whose name a function here has too.
void *library_function(const char *name) {
    static void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return dlsym(library, name);
}

}  // namespace

extern "C" HIDDEN void *__cxa_allocate_exception(size_t size) {
    static auto allocate = reinterpret_cast<void *(*)(size_t)>(library_function("__cxa_allocate_exception"));
    void *bytes = allocate(size);
    if (running != nullptr) {
        running->thrown = reinterpret_cast<uintptr_t>(bytes);
        running->thrown_end = running->thrown + size;
    }
    return bytes;
}

extern "C" HIDDEN void __cxa_throw(void *bytes, void *type, void (*destroy)(void *)) {
    using Throw = void (*)(void *, void *, void (*)(void *));
    static auto throws = reinterpret_cast<Throw>(library_function("__cxa_throw"));
    if (running != nullptr) running->thrown_at = WHERE;
    throws(bytes, type, destroy);
    __builtin_unreachable();
}

// -- ends of the process, which a kernel does not have

extern "C" HIDDEN void abort() {
    report("abort", WHERE);
    __builtin_trap();
}

extern "C" HIDDEN void exit(int) {
    report("exit", WHERE);
    __builtin_trap();
}

extern "C" HIDDEN void _exit(int) {
    report("exit", WHERE);
    __builtin_trap();
}

extern "C" HIDDEN void __stack_chk_fail() {
    report("stack", WHERE);
    __builtin_trap();
}
