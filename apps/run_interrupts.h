// Ctrl-C as something to ask for, instead of a signal that ends the program.
#pragma once

#include <csignal>

namespace strata::apps {

// While it lives, SIGINT waits for this thread and for those started meanwhile.
// REQUIRES: made before other threads are.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether Ctrl-C was pressed since the last time it was asked.
  bool take();

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace strata::apps
