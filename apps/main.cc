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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help and --version come this way too
  }
  return exit_code;
}
