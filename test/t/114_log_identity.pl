# A position belongs to one log: after a reset the same file names and offsets come again, and reading on there would diverge in
# silence. A log file is told by when it was made; where that is not known, by a position at which no event begins.
# takes: 29 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $source = CdcBridge::Source->new;
my $reset = $source->is_mysql ? 'reset binary logs and gtids' : 'reset master';
my $pipeline;

sub start
{
	# a log of its own, so that each case begins at bl.000001
	$source->sql('drop database if exists shop', $reset, 'create database shop', 'create table shop.t (id int primary key, v varchar(2000))',
		"insert into shop.t values (1, 'one')");
	$pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
	$postgres->psql('drop extension if exists cdc_bridge cascade');
	$pipeline->drop_target->setup->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	return;
}

sub position
{
	my ($column) = @_;
	return $postgres->psql("select $column from cdc_bridge.position");
}

# A file is told by the second in which it was made.
sub next_second
{
	my $now = $source->query_value('select unix_timestamp()');
	poll_until(sub { return $source->query_value('select unix_timestamp()') > $now + 1; }) or die "the source's clock stands still\n";
	return;
}

sub refused
{
	my ($name, $message, $detail) = @_;
	$pipeline->wait_for_state('failed', 60);
	is($pipeline->status('last_error_sqlstate'), 'YC002', "$name: YC002");
	like($pipeline->status('last_error'), $message, "$name: message");
	like($pipeline->status('last_error_detail'), $detail, "$name: detail");
	like($pipeline->status('last_error_hint'), qr/cdc_set_position\(\) with anew => true/, "$name: hint");
	is($postgres->psql('select count(*) from shop.t where id > 1000'), '0', "$name: nothing of the other log was applied");
}

sub fill
{
	$source->sql(map { "insert into shop.t values ($_, repeat('x', 1000))" } 1001 .. 1020);
}

# 1. Stopped and started without a reset: the file is the same, also when it is opened in the middle, and it goes on.
start();
$source->sql("insert into shop.t values (2, 'two')");
$pipeline->wait_for_catchup->stop;
isnt(position('extract(epoch from file_created)::bigint'), '', 'the position tells when its file was made');
my $made = position('extract(epoch from file_created)::bigint');
$source->sql("insert into shop.t values (3, 'three')");
next_second();
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$source->sql("insert into shop.t values (4, 'four')");
$pipeline->wait_for_catchup;
$pipeline->is_same('opened in the middle of the same file');
is(position('extract(epoch from file_created)::bigint'), $made, 'a file that is opened in the middle tells the same time');

# into the next file, and over a restart of the source
$source->sql('flush binary logs', "insert into shop.t values (5, 'five')");
$pipeline->wait_for_catchup;
isnt(position('extract(epoch from file_created)::bigint'), $made, 'the next file has a time of its own');
$source->restart;
$source->sql("insert into shop.t values (6, 'six')");
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->stop;
$source->restart;
$source->sql("insert into shop.t values (7, 'seven')");
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('over restarts of the source');
$pipeline->stop->drop;

# 2. Reset while the pipeline is stopped; writes of the same size lead past its position, to the start of an event.
start();
$source->sql("insert into shop.t values (2, 'two')");
$pipeline->wait_for_catchup->stop;
my ($file, $offset) = $source->binlog_position;
next_second();
$source->sql('drop database shop', $reset, 'create database shop', 'create table shop.t (id int primary key, v varchar(2000))',
	"insert into shop.t values (1, 'one')", "insert into shop.t values (2, 'two')");
fill();
is(($source->binlog_position)[0], $file, 'the new log has the file name of the old one');
$pipeline->start;
refused('reset', qr/binary log file "bl\.000001" of source server "shop" is not the one that was read before/, qr/began at .*this one at/);
$pipeline->drop;

# 3. The same on an idle source, right after the copy: the position has learned of its file.
start();
$postgres->poll('select file_created is not null from cdc_bridge.position', 't', 30) or die "the file is not known\n" . $pipeline->describe;
$pipeline->stop;
next_second();
$source->sql($reset);
fill();
$pipeline->start;
refused('reset of an idle log', qr/is not the one that was read before/, qr/began at/);
$pipeline->drop;

# 4. When the file was made is not known (a position from before): the position is inside an event of the new log.
start();
$source->sql("insert into shop.t values (2, 'two')");
$pipeline->wait_for_catchup->stop;
$postgres->psql("update cdc_bridge.position_1_$_ set file_created = null") for 1, 2;
$offset = position('"offset"');
$source->sql('set sql_log_bin = 0', 'delete from shop.t');
$source->sql($reset, 'set sql_log_bin = 1');
$source->sql("insert into shop.t values (1001, repeat('y', $_))") and $source->sql('delete from shop.t') for 500;
fill();
my @events = $source->query_rows("show binlog events in 'bl.000001'");
ok(!(grep { $_->[1] == $offset } @events), 'no event begins at the position');
ok(($source->binlog_position)[1] > $offset, 'the log goes on behind it');
$pipeline->start;
refused('position inside an event', qr/does not have the log that was followed/, qr/bl\.000001:$offset/);
$pipeline->drop;

# 5. Reset under a stream that is open, in the first file and in a later one.
for my $flushes (0, 1)
{
	start();
	$source->sql(('flush binary logs') x $flushes, "insert into shop.t values (2, 'two')");
	$pipeline->wait_for_catchup;
	next_second();
	$source->sql($reset);
	fill();
	my $failed = eval { $pipeline->wait_for_state('failed', 30); };
	ok($failed, "reset under an open stream, $flushes files on") or diag($pipeline->describe);
	like($pipeline->status('last_error_sqlstate'), qr/^YC00[12]$/, 'with YC001 or YC002');
	is($postgres->psql('select count(*) from shop.t where id > 1000'), '0', 'nothing of the new log was applied');
	$pipeline->drop if $failed;
}

done_testing();
