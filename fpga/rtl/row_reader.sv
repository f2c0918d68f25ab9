// Reads the rows of a matrix that a stream of indices selects, off chip: every row is read anew. A
// row occupies whole beats of the memory. The queue holds DEPTH beats, without the padding of rows
// that are shorter than a beat.
module row_reader #(
    parameter int COLUMNS = 16,
    parameter int BEAT = 32,
    parameter int DEPTH = 512
) (
    input  logic                  clock,
    input  logic                  reset,
    input  logic [          31:0] base,          // first beat of the matrix
    // indices; an index is taken when the first beat of its row is requested
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
  localparam int WORDS = COLUMNS < BEAT ? COLUMNS : BEAT;
  localparam int POSITION = BEATS > 1 ? $clog2(BEATS) : 1;

  logic space, beat_valid, beat_pop;
  logic [WORDS*32-1:0] beat;
  wire unused = &{1'b0, answer_data};
  logic [POSITION-1:0] position;  // beat of the row that is requested next
  logic [31:0] first, following;  // addresses: of the row's first beat, of its next beat

  fifo #(
      .WIDTH(WORDS * 32),
      .DEPTH(DEPTH)
  ) beats (
      .clock,
      .reset,
      .space,
      .reserve(grant),
      .push(answer),
      .in(answer_data[WORDS*32-1:0]),
      .valid(beat_valid),
      .pop(beat_pop),
      .out(beat)
  );
  row_assembly #(
      .COLUMNS(COLUMNS),
      .WORDS(WORDS)
  ) assembly (
      .clock,
      .reset,
      .beat_valid,
      .beat_pop,
      .beat,
      .valid,
      .pop,
      .row
  );

  // index * BEATS by shifts and sums, because multipliers are for numbers only
  always_comb begin
    first = base;
    for (int i = 0; i <= $clog2(BEATS); i++) if (((BEATS >> i) & 1) == 1) first += index << i;
  end
  assign request = space && (position != '0 || index_valid);
  assign address = position == '0 ? first : following;
  assign index_pop = grant && position == '0;

  always_ff @(posedge clock) begin
    if (grant) following <= address + 1'b1;
    if (reset) position <= '0;
    else if (grant) position <= position == POSITION'(BEATS - 1) ? '0 : position + 1'b1;
  end
endmodule
