// The strata program: one subcommand per file.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Strata: runs large language models on the machine you have"};
  app.set_version_flag("--version", "strata " STRATA_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  strata::apps::add_commands(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
