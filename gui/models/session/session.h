#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/compare/metrics_follower.h"
#include "gui/models/explore/explored_rows.h"
#include "gui/models/explore/simulated_rows.h"
#include "gui/models/question/predictions.h"
#include "gui/models/session/failure.h"
#include "gui/models/session/known_files.h"
#include "gui/models/session/worker.h"
#include "gui/models/window/app_state.h"
#include "gui/models/window/left_view.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// The one owner of the state: panels read it, commands call what changes it.
class Session {
 public:
  /// \param only  the one workspace that is ever looked at: what no panel of it shows is not found
  explicit Session(Plan plan, Timing timing = Timing::all,
                   std::optional<Workspace> only = std::nullopt);

  const AppState& state() const { return state_; }
  Worker& worker() { return worker_; }
  /// Does what nobody waits for, one search after the other while worker() has nothing to do.
  Worker& background() { return background_; }

  /// Reads files and makes large ones, beside the worker.
  Worker& reader() { return reader_; }
  /// Has `wake` called by any of the three when collect() may have something to take over.
  void on_result(const std::function<void()>& wake);
  /// Waits for the files that are being made, and stops reading others: for the end of a window.
  void finish_files();

  /// Takes over what the workers have found. Once a frame.
  void collect();
  /// Waits for all of it: for pictures and scripts.
  void settle();

  /// Another plan: undo() comes back.
  void change(Plan plan, Change what);
  /// Changes the plan with a ghost where the layout was. While a pointer is held, changes of one
  /// field are one entry of undo().
  void drag(Plan plan, Change what, const std::string& field);
  void hold_pointer(bool held);
  void undo();
  void redo();
  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }

  void select_row(std::size_t row);  // of the answer
  void move_selection(int rows);     // among those shown
  /// The layout of a neighbour, by its place in the state.
  void take_neighbour(std::size_t place);
  /// A slider of the state to one of its steps.
  void slide(const std::string& id, std::size_t step);
  /// Sets a field to what people typed. \returns empty, or what is wrong with it
  std::string type_field(const std::string& id, const std::string& text);
  void set_filter(const std::string& text);
  void set_only_fitting(bool only);
  /// Sorts by a column, or turns its order around; `second` keeps what is sorted by so far.
  void sort_by(std::size_t column, bool second);
  void set_sort(std::vector<SortKey> keys);

  // Files and comparisons: session_files.cc, session_compare.cc.

  /// Opens a file by what is in it: a plan, model or cluster becomes the question, a report or
  /// trace what it is compared with. Read by the reader; what is wrong is said, and all stays.
  void open_file(const std::string& path);
  /// Opens a file that the plan is compared with, a plan among them.
  void open_compared(const std::string& path);
  void stop_reading();
  /// Why the last file was not read or written, once.
  Failure take_failure() { return std::exchange(failure_, {}); }
  KnownFiles& files() { return files_; }
  /// Writes a file, whole or not at all. \returns empty, or why not
  std::string write(const std::string& path, const std::string& text);
  void compare_with(std::shared_ptr<const Compared> other);  // null: with nothing
  void show_compared(bool shown) { state_.compare.shown = shown; }
  void compare_by(CompareBy by);
  void compare_range(std::optional<OwnRange> own) { state_.compare.own = own; }
  /// Corrects all predictions by the measured run; undo() takes it back.
  /// \returns empty, or why it cannot be
  std::string calibrate();
  /// Shows the operation of a row of the list on the timeline. \returns empty, or why not
  std::string look_at(std::size_t row);

  /// Shows a run while it writes its file of metrics: session_metrics.cc.
  void follow(const std::string& path);
  void follow_nothing();
  /// Reads what the run has added. \returns empty, or why there is no more to read
  std::string poll_metrics();
  /// Has it known what links of another bandwidth are worth to the plan.
  void want_links() { show_links(); }
  /// Has it found what would help most: of the question as it is now, and of none that follows.
  void want_levers() { state_.exploring.levers.asked = true; }
  /// Shows a row of that list: its question with the best layout. \returns empty, or why not
  std::string take_lever(std::size_t row);
  // The rest of the question. Each returns empty, or what is wrong.
  /// Lists only layouts with that value of a field, or all again; without a value, the selection's.
  std::string toggle_lock(const std::string& field, const std::string& value);
  /// Lists layouts with every value of a field that the usual space leaves one, or not.
  std::string toggle_open(const std::string& field);
  void set_objective(Objective objective);
  /// Another model, cluster or engine of the catalogue, with the best layout once it is known.
  std::string take_model(const std::string& name);
  std::string take_cluster(const std::string& name);
  std::string take_engine(const std::string& name);
  /// Why the best layout has not these values: "tp=4 pp=2"; empty: the selection again.
  std::string ask_why(const std::string& values);

  /// State of the explore workspace, for the commands that change it and nothing else.
  ExploreState& exploring() { return state_.exploring; }
  void toggle_pin();
  void set_table(ExploreView view);

  void set_workspace(Workspace workspace);
  /// Brings a panel in sight, in another workspace where this one has it not.
  /// \returns empty, or why it cannot be
  std::string show_panel(const std::string& id);
  /// Shows why numbers of a subject are what they are.
  void set_subject(std::string subject) {
    state_.subject = std::move(subject);
    state_.details_open = true;
  }
  /// The best layout of a cell of the scaling map: on that many GPUs, in the row of that value, or
  /// in the question's row where `row` is empty. \returns empty, or why there is none
  std::string take_scaling(std::int64_t gpus, const std::string& row);
  void set_scaling_rows(ScalingRows rows);
  void set_scaling_colour(ScalingColour colour) { state_.scaling.colour = colour; }
  /// Stops the filling of the map, or goes on with it.
  void pause_scaling(bool paused);
  /// Shows the groups of a rank until another is pinned, or none. \returns empty, or why not
  std::string pin_rank(std::optional<std::int64_t> rank);
  void set_mesh_colour(MeshColour colour) { state_.mesh.colour = colour; }
  /// Another order of axes, or only what it would cost; read_order() has the words.
  std::string set_order(const std::string& words, bool only_try);
  /// A link of another bandwidth: what it is worth. \returns empty, or what is wrong
  std::string set_bandwidth(const std::string& tier, double factor);
  void reset_bandwidth();
  /// Such links become the question's.
  std::string take_bandwidth();
  void toggle_lanes() { state_.all_lanes = !state_.all_lanes; }
  void set_range(TimeRange range) { state_.range = range; }
  TimelineView& timeline() { return state_.timeline; }
  /// A span of the step that is shown, or none; it comes into sight.
  void choose(std::optional<ChosenSpan> chosen);
  /// Shows the ranks of the pipeline that a rank is of.
  void show_rank(std::int64_t rank);
  /// Simulates the step again with something that takes another time.
  void stretch(const std::string& word, const sim::PriceScale& scale);
  void unstretch();
  void clear_timeline();  // of what was chosen, measured and stretched
  void set_memory_group(std::optional<MemoryGroup> group) { state_.memory_group = group; }
  void set_memory_by(MemoryBy by) { state_.memory_by = by; }
  void set_dark(bool dark) { state_.dark = dark; }
  void say(std::string message) { state_.message = std::move(message); }
  void open_palette(std::string typed);
  void toggle_start() { state_.start_open = !state_.start_open; }
  void toggle_help() { state_.help_open = !state_.help_open; }
  /// Palette, help and start or, where neither is open, what was chosen on the timeline.
  void close_all();
  void quit() { state_.quits = true; }
  void arrange() { ++state_.arrangements; }

  /// The picture of the frame that follows; take_png() is for who draws it.
  /// \param scale  another than the window's; 0: its own
  void request_png(std::string path, double scale = 0) {
    state_.png_path = std::move(path);
    state_.exploring.png_scale = scale;
  }
  /// Text for the clipboard, once.
  std::string take_copied() { return std::exchange(state_.exploring.copied, ""); }
  std::string take_png() { return std::exchange(state_.png_path, ""); }
  /// The places of panels as a file, after the frame; take_view_path() is for who knows them.
  void request_view(std::string path) { state_.view_path = std::move(path); }
  std::string take_view_path() { return std::exchange(state_.view_path, ""); }
  void save_view(const std::string& path, const LeftView& view);
  /// \returns empty, or what is wrong with the file
  std::string load_view(const std::string& path);
  std::string take_panels() { return std::exchange(state_.panels, ""); }
  /// \returns empty, or why it could not be written
  std::string save_csv(const std::string& path);
  std::string save_plan(const std::string& path);
  std::string save_scaling(const std::string& path);
  /// The simulated step, as `shardwise simulate` writes it; made beside the frames, as the page is.
  std::string save_report(const std::string& path);
  std::string save_trace(const std::string& path);
  /// The page of `shardwise report`, once its layouts are ranked.
  std::string save_page(const std::string& path);
  /// The command that says the same of the selection, and its numbers as JSON: to the clipboard,
  /// and to a file where one is named.
  std::string copy_command(const std::string& path);
  std::string copy_json(const std::string& path);

  /// Has the bars of these rows made; they come with a later collect().
  void want_bars(std::span<const std::uint32_t> rows);
  /// Has the cheapest change made known that makes a row fit.
  void want_fix(std::uint32_t row);
  /// Has the menus of the question filled.
  void want_catalogue();

 private:
  /// State that undo() comes back to.
  struct Past {
    Plan plan;
    QuestionLimits limits;
    std::shared_ptr<const Correction> correction;
  };
  void put(Plan plan, Change what);
  bool may_show(Workspace workspace) const { return !only_ || *only_ == workspace; }
  /// All step times that are shown are theirs.
  Predictions predictions() const { return Predictions(state_.correction); }
  void set_correction(std::shared_ptr<const Correction> correction);
  void drop_foreign_correction();
  void compare();
  void fail(const std::string& path, Failure failure);
  void read(const std::string& path, Worker::Job job);
  void show_metrics();
  void done_reading(const std::string& path);
  void remember();
  void go_to(Past past);
  void set_limits(QuestionLimits limits);
  std::string take_subject(Result<Plan> plan);
  void simulate_best();  // and then follow_best()
  void follow_best();
  std::optional<Plan> slid(const Slider& slider, std::int64_t step) const;
  void find_published();
  void find_way_out();
  void reset_levers();
  void keep_levers();
  std::string copy(std::string text, const std::string& what, const std::string& path);
  void ask();
  void simulate();
  void look_around();
  void explain();
  void show_mesh();
  void show_links();
  void price_links();
  void scale_up();
  void restart_map();
  void keep_scaling();
  void make_map();
  void search_cell(std::size_t cell);
  void find_winner();
  void take(Answer answer);
  std::string save(const std::string& path, const std::string& text);
  std::string save_step(const std::string& path, std::string (*text_of)(const Plan&));
  void refresh_shown();

  AppState state_;
  Timing timing_;
  std::optional<Workspace> only_;
  std::vector<Past> past_;
  std::vector<Past> future_;
  bool held_ = false;    // a pointer is
  std::string dragged_;  // the field that it has changed
  std::vector<std::uint32_t> bars_asked_;
  bool rows_changed_ = false;   // since the last collect()
  bool ranked_ = false;         // all rows of the newest answer
  std::uint64_t follows_ = 0;   // the question whose best layout is to be selected
  std::uint64_t steps_of_ = 0;  // the question of steps_
  std::vector<SimulatedRow> steps_;
  std::uint64_t winner_of_ = 0;  // the question of state_.winner
  std::uint64_t scaled_ = 0;     // the question that scaling is of
  std::uint64_t puts_ = 0;       // plans that there were
  std::uint64_t meshed_ = 0;     // of these the one that the mesh is of
  std::uint64_t linked_ = 0;     // and the one that its links are of
  std::shared_ptr<SearchMemory> known_ = std::make_shared<SearchMemory>();
  std::vector<std::string> reading_;  // files, in their order
  Failure failure_;                   // of the last file
  KnownFiles files_;
  std::shared_ptr<MetricsFollower> follower_;  // null: none
  Worker background_;
  Worker worker_;
  Worker reader_;
};

}  // namespace shardwise::view
