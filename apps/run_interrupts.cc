#include "run_interrupts.h"

namespace strata::apps {

Interrupts::Interrupts() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

Interrupts::~Interrupts() {
  (void)take();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::take() {
  sigset_t pending;
  if (sigpending(&pending) != 0 || sigismember(&pending, SIGINT) != 1) return false;
  int signal = 0;
  return sigwait(&signals_, &signal) == 0;
}

}  // namespace strata::apps
