// Holds a whole matrix on chip. After reset, it loads `count` rows through the memory port, beat
// after beat; when `loaded` is set, it returns one row per cycle for a stream of indices, with a
// latency of one cycle. ROWS is its size; every index must be less than `count`.
module row_memory #(
    parameter int COLUMNS = 16,
    parameter int BEAT = 32,
    parameter int ROWS = 1024
) (
    input  logic                  clock,
    input  logic                  reset,
    input  logic [          31:0] base,         // first beat of the matrix
    input  logic [          31:0] count,
    output logic                  loaded,
    // indices
    input  logic                  index_valid,
    output logic                  index_pop,
    input  logic [          31:0] index,
    // memory port, as in word_reader
    output logic                  request,
    output logic [          31:0] address,
    input  logic                  grant,
    input  logic                  answer,
    input  logic [   BEAT*32-1:0] answer_data,
    // rows
    output logic                  valid,
    input  logic                  pop,
    output logic [COLUMNS*32-1:0] row
);
  localparam int BEATS = (COLUMNS + BEAT - 1) / BEAT;
  localparam int POSITION = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int PLACE = ROWS > 1 ? $clog2(ROWS) : 1;

  logic [31:0] requested, stored;  // rows
  logic [POSITION-1:0] request_position, store_position;  // beats of the next rows
  wire unused = &{1'b0, index, stored, answer_data};

  assign loaded = stored == count;
  assign request = !reset && requested != count;
  assign index_pop = loaded && index_valid && (!valid || pop);

  // One memory per beat of a row, so that a beat is written and a row is read in one cycle.
  for (genvar i = 0; i < BEATS; i++) begin : g_beat
    localparam int WIDTH = 32 * (i == BEATS - 1 ? COLUMNS - i * BEAT : BEAT);
    logic [WIDTH-1:0] words[ROWS];
    always_ff @(posedge clock) begin
      if (answer && store_position == POSITION'(i))
        words[stored[PLACE-1:0]] <= answer_data[WIDTH-1:0];
      if (index_pop) row[32*BEAT*i+:WIDTH] <= words[index[PLACE-1:0]];
    end
  end

  always_ff @(posedge clock) begin
    if (reset) begin
      address <= base;
      requested <= '0;
      stored <= '0;
      request_position <= '0;
      store_position <= '0;
      valid <= 1'b0;
    end else begin
      if (grant) begin
        address <= address + 1'b1;
        request_position <= request_position == POSITION'(BEATS - 1) ? '0 : request_position + 1'b1;
        if (request_position == POSITION'(BEATS - 1)) requested <= requested + 1'b1;
      end
      if (answer) begin
        store_position <= store_position == POSITION'(BEATS - 1) ? '0 : store_position + 1'b1;
        if (store_position == POSITION'(BEATS - 1)) stored <= stored + 1'b1;
      end
      valid <= index_pop || (valid && !pop);
    end
  end
endmodule
