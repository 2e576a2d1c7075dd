# A log file larger than 4 GiB without GTIDs: the log's own positions have 32 bits, and so has the protocol's when reading begins. The file
# is a real one, made larger by events that all readers ignore, which take no room on the disk. Only when CDC_LOAD_MB is set (make
# test-long): 4 GiB are read three times.
# cells: mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

plan skip_all => 'takes long: set CDC_LOAD_MB' unless $ENV{CDC_LOAD_MB};

use constant { PAD => 64 << 20, PADS => 65, HEADER => 19, IGNORABLE_TYPE => 28, IGNORABLE_FLAG => 0x80 };

my $postgres = CdcBridge::Postgres->new;
my $source = CdcBridge::Source->new(args => [ '--gtid-mode=OFF', '--binlog-checksum=NONE', '--performance-schema=ON' ]);
$source->sql(q{grant backup_admin on *.* to 'repl'@'%'}, q{grant select on performance_schema.log_status to 'repl'@'%'});
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->stop;
my ($file, $offset) = $source->binlog_position;
$source->sql('insert into shop.t values (2, 2)', 'insert into shop.t values (3, 3)', 'update shop.t set v = 4 where id = 1', 'delete from shop.t where id = 2');
$source->stop;

# what stands behind OFFSET moves behind the padding; each event's header says where it ends
sub enlarge
{
	my ($path, $at) = @_;
	open(my $in, '<:raw', $path) or die;
	local $/;
	my $bytes = <$in>;
	close($in);
	open(my $out, '>:raw', "$path.new") or die;
	print $out substr($bytes, 0, $at);
	my $end = $at;
	for (1 .. PADS)
	{
		seek($out, $end, 0);
		$end += PAD;
		print $out pack('VCVVVv', 1, IGNORABLE_TYPE, 62, PAD, $end & 0xffffffff, IGNORABLE_FLAG);
	}
	seek($out, $end, 0);
	my @starts;
	for (my $from = $at; $from < length($bytes);)
	{
		my ($time, $type, $server, $length, $next, $flags) = unpack('VCVVVv', substr($bytes, $from, HEADER));
		push @starts, [ $type, $end ];
		$end += $length;
		print $out pack('VCVVVv', $time, $type, $server, $length, $end & 0xffffffff, $flags), substr($bytes, $from + HEADER, $length - HEADER);
		$from += $length;
	}
	close($out);
	rename("$path.new", $path) or die;
	return @starts;
}
my @starts = enlarge("$source->{dir}/data/$file", $offset);
chown((stat("$source->{dir}/data"))[ 4, 5 ], "$source->{dir}/data/$file");
my @groups = map { $_->[1] } grep { $_->[0] == 34 } @starts;    # ANONYMOUS_GTID
cmp_ok($groups[0], '>', 1 << 32, 'transactions begin above 4 GiB');
$source->start;
$source->sql('insert into shop.t values (5, 5)');

$pipeline->start->wait_for_state('streaming')->wait_for_catchup(300);
$pipeline->is_same('B19: read through a file larger than 4 GiB');
is($pipeline->table_status('t', 'conflicts'), '0', 'nothing came twice');

# begun above 4 GiB: the second of the four
$pipeline->stop;
$postgres->psql("delete from shop.t where id = 3; update shop.t set v = 0 where id = 1; select cdc_reset_stats(); select cdc_set_position('shop_in', at => '$file:$groups[1]')");
$pipeline->start->wait_for_state('streaming')->wait_for_catchup(300);
$pipeline->is_same('B19: begun at an offset above 4 GiB, which the protocol has no bits for');
is($pipeline->table_status('t', 'inserts') . ' ' . $pipeline->table_status('t', 'updates') . ' ' . $pipeline->table_status('t', 'deletes'), '2 1 1',
	'what lies before it does not count');

done_testing();
