// Assembles rows of COLUMNS words from beats of WORDS words: one row is assembled while the row
// before is in use. If a row is one beat, it passes through.
module row_assembly #(
    parameter int COLUMNS = 16,
    parameter int WORDS = 16
) (
    input  logic                  clock,
    input  logic                  reset,
    input  logic                  beat_valid,
    output logic                  beat_pop,
    input  logic [  WORDS*32-1:0] beat,
    output logic                  valid,
    input  logic                  pop,
    output logic [COLUMNS*32-1:0] row
);
  localparam int BEATS = (COLUMNS + WORDS - 1) / WORDS;

  if (BEATS == 1) begin : g_whole
    wire unused = &{1'b0, clock, reset, beat};
    assign valid = beat_valid;
    assign beat_pop = pop;
    assign row = beat[COLUMNS*32-1:0];
  end else begin : g_beats
    localparam int POSITION = $clog2(BEATS);
    logic [(BEATS-1)*WORDS*32-1:0] gathered;
    logic [POSITION-1:0] position;
    wire last = position == POSITION'(BEATS - 1);
    wire [BEATS*WORDS*32-1:0] complete = {beat, gathered};
    wire unused = &{1'b0, complete};

    assign beat_pop = beat_valid && (!last || !valid || pop);
    always_ff @(posedge clock) begin
      for (int i = 0; i < BEATS - 1; i++)
        if (beat_pop && position == POSITION'(i)) gathered[WORDS*32*i+:WORDS*32] <= beat;
      if (beat_pop && last) row <= complete[COLUMNS*32-1:0];
      if (reset) begin
        position <= '0;
        valid <= 1'b0;
      end else begin
        if (beat_pop) position <= last ? '0 : position + 1'b1;
        valid <= (beat_pop && last) || (valid && !pop);
      end
    end
  end
endmodule
