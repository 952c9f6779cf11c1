// Ends the process with a line that names the file with an instruction that this processor lacks. Without it, the
// process would be killed silently.

#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace illegal_instructions {

inline struct sigaction before;

// Compilers put this instruction at unreachable places; it does not indicate a wrong processor.
inline bool is_deliberate(const void* instruction) {
#ifdef __x86_64__
    return std::memcmp(instruction, "\x0f\x0b", 2) == 0;
#else
    return false;
#endif
}

inline void write_error(const char* text) {
    // A failure cannot be reported.
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

inline void end(int, siginfo_t* about, void*) {
    const bool sent_by_a_process = about->si_code <= 0;
    if (sent_by_a_process || is_deliberate(about->si_addr)) {
        sigaction(SIGILL, &before, nullptr);
        raise(SIGILL);
        return;
    }
    Dl_info file = {};
    dladdr(about->si_addr, &file);
    write_error("Error: ");
    write_error(file.dli_fname ? file.dli_fname : "generated code");
    write_error(" has instructions that this processor lacks: it was compiled for another one. Build it for this one"
                " (docs/dependencies.md, Processors).\n");
    _exit(1);
}

inline void report() {
    struct sigaction action = {};
    action.sa_sigaction = end;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before);
}

}  // namespace illegal_instructions
