#include "commands.h"

namespace strata::apps {

void add_commands(CLI::App& app, int& exit_code) {
  add_run(app, exit_code);
  add_serve(app, exit_code);
  add_ps(app, exit_code);
  add_stop(app, exit_code);
  add_pull(app, exit_code);
  add_ls(app, exit_code);
  add_rm(app, exit_code);
  add_logits(app, exit_code);
  add_perplexity(app, exit_code);
  add_embed(app, exit_code);
  add_bench(app, exit_code);
  add_profile(app, exit_code);
  add_show(app, exit_code);
  add_template(app, exit_code);
  add_tokenize(app, exit_code);
  add_detokenize(app, exit_code);
}

}  // namespace strata::apps
