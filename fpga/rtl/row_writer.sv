// Writes `count` rows to the memory, in order: the first beat of the output is `base`, and a row
// occupies whole beats, the last one padded with zeros. `done` is set in the cycle after the last
// beat was accepted.
module row_writer #(
    parameter int COLUMNS = 16,
    parameter int BEAT = 32
) (
    input  logic                  clock,
    input  logic                  reset,
    input  logic [          31:0] base,
    input  logic [          31:0] count,
    output logic                  done,
    // rows
    input  logic                  valid,
    output logic                  pop,
    input  logic [COLUMNS*32-1:0] row,
    // memory port
    output logic                  request,
    output logic [          31:0] address,
    output logic [   BEAT*32-1:0] data,
    input  logic                  grant
);
  localparam int BEATS = (COLUMNS + BEAT - 1) / BEAT;
  localparam int POSITION = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int PADDED = BEATS * BEAT * 32;

  logic [31:0] left;
  logic [POSITION-1:0] position;
  wire [PADDED-1:0] padded = PADDED'(row);

  assign done = left == '0;
  assign request = valid;
  assign pop = grant && position == POSITION'(BEATS - 1);
  always_comb begin
    data = padded[BEAT*32-1:0];
    for (int i = 1; i < BEATS; i++) if (position == POSITION'(i)) data = padded[BEAT*32*i+:BEAT*32];
  end

  always_ff @(posedge clock) begin
    if (reset) begin
      address <= base;
      left <= count;
      position <= '0;
    end else begin
      if (grant) begin
        address <= address + 1'b1;
        position <= pop ? '0 : position + 1'b1;
      end
      if (pop) left <= left - 1'b1;
    end
  end
endmodule
