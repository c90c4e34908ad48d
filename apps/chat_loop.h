// `strata run` without a prompt: a conversation at the terminal.
#pragma once

#include "chat_settings.h"
#include "run_interrupts.h"
#include "run_model.h"

namespace strata::apps {

struct ChatOptions {
  ChatSettings settings;
  bool context_shift = false;
  bool verbose = false;
};

// Until the user leaves. REQUIRES: the model has a template and its engine is loaded.
Status run_chat(TalkingModel& model, ChatOptions options, Interrupts& interrupts);

}  // namespace strata::apps
