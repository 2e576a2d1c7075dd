# cells: pg18
# Messages outside of transactions have a place of their own in the log: one right behind a transaction is neither lost nor
# doubled when the server dies between the two. And a large transaction is seen to come on, and lets its worker go.

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"format": "json", "messages": true, "flush_max_ms": 0}')->setup;
$postgres->psql("create schema shop; create table shop.t (id int primary key, name text)");
$export->start->wait_for_state('streaming');

# The slot on disk stays at a checkpoint; what the worker confirms afterwards is forgotten by a crash, so the transaction comes again.
$postgres->psql('checkpoint');
$postgres->psql("insert into shop.t values (1, 'a'); select pg_logical_emit_message(false, 'mine', 'right behind')");
$export->wait_for_all;
$postgres->kill9;
my $file = ($export->files)[-1];
my $text = slurp($file);
ok($text =~ s/("id":1,"name":"a"[^\n]*\n\{"cdc_bridge":\{[^\n]*\n).*"right behind".*\z/$1/s, 'the crash has taken the message, and left the transaction');
open(my $out, '>:raw', $file) or die "$file: $!";
print $out $text;
close($out);
my $again = CdcBridge::Export->new(postgres => $postgres, dir => $export->{dir}, created => 1);
$postgres->start;
$again->wait_for_state('streaming')->wait_for_all;
is(scalar(grep { ($_->{content} // '') eq 'right behind' } $again->records), 1, 'then it comes again');
$postgres->psql("checkpoint; select pg_logical_emit_message(false, 'mine', 'last')");
$again->wait_for_all;
$postgres->kill9;
$postgres->start;
$postgres->psql("insert into shop.t values (100, 'after')");
$again->wait_for_state('streaming')->wait_for_all;
is(scalar(grep { ($_->{content} // '') eq 'last' } $again->records), 1, 'and what was flushed comes once');

# ---- a large transaction

# How many of its lines an end record stands behind.
sub believed
{
	my ($sum, $open) = (0, 0);
	for my $path ($again->files)
	{
		open(my $in, '<:raw', $path) or die "$path: $!";
		while (my $line = <$in>)
		{
			if ($line =~ /^\{"cdc_bridge":/) { $sum += $open; $open = 0; }
			else { $open += $line =~ /"name":"xxx/; }
		}
		$open = 0;
	}
	return $sum;
}

my $changes = $again->status('changes');
$postgres->psql("insert into shop.t select i, repeat('x', 50) from generate_series(1001, 801000) i");
ok($postgres->poll("select changes between $changes + 1000 and $changes + 790000 from pg_stat_cdc_export", 't'), 'how far a large transaction is can be seen while it comes');
$postgres->psql("select cdc_stop_pipeline('shop_out')");
ok($postgres->poll("select pid is null from pg_stat_cdc_export", 't', 30), 'and its worker goes when it is told to');
is(believed(), 0, 'nothing of it is to be believed');
$again->start->wait_for_all;
is(believed(), 800000, 'then all of it, once');

done_testing();
