// Reads an array of `count` 32-bit words from the memory, beat after beat, once, and hands the
// words out one by one. A beat has BEAT words; the queue holds DEPTH words, a multiple of BEAT.
module word_reader #(
    parameter int BEAT  = 32,
    parameter int DEPTH = 512
) (
    input  logic               clock,
    input  logic               reset,
    // the array: first beat, number of words; constant from reset on
    input  logic [       31:0] base,
    input  logic [       31:0] count,
    // memory port: a request is accepted when `grant` is set; answers come in order
    output logic               request,
    output logic [       31:0] address,
    input  logic               grant,
    input  logic               answer,
    input  logic [BEAT*32-1:0] answer_data,
    // words
    output logic               valid,
    input  logic               pop,
    output logic [       31:0] word
);
  localparam int POSITION = BEAT > 1 ? $clog2(BEAT) : 1;

  logic space, beat_valid, beat_pop;
  logic [BEAT*32-1:0] beat;
  logic [32:0] requested;  // words
  logic [31:0] left;  // words not handed out yet
  logic [POSITION-1:0] position;  // of the next word in the beat

  fifo #(
      .WIDTH(BEAT * 32),
      .DEPTH(DEPTH / BEAT)
  ) beats (
      .clock,
      .reset,
      .space,
      .reserve(grant),
      .push(answer),
      .in(answer_data),
      .valid(beat_valid),
      .pop(beat_pop),
      .out(beat)
  );

  assign request = !reset && requested < {1'b0, count} && space;
  assign valid = beat_valid && left != '0;
  assign beat_pop = pop && position == POSITION'(BEAT - 1);
  always_comb begin
    word = beat[31:0];
    for (int i = 1; i < BEAT; i++) if (position == POSITION'(i)) word = beat[32*i+:32];
  end

  always_ff @(posedge clock) begin
    if (reset) begin
      address <= base;
      requested <= '0;
      left <= count;
      position <= '0;
    end else begin
      if (grant) begin
        address <= address + 1'b1;
        requested <= requested + 33'(BEAT);
      end
      if (pop) begin
        left <= left - 1'b1;
        position <= beat_pop ? '0 : position + 1'b1;
      end
    end
  end
endmodule
